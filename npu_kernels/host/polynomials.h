/* Minimax polynomials of the vector math, written by scripts/derive_polynomials.py. */
#ifndef AUTOFUSE_HOST_POLYNOMIALS_H
#define AUTOFUSE_HOST_POLYNOMIALS_H
#include "bits.h"

/* exp(r) = 1 + r + r^2 P(r), |r| <= log(2)/2: relative error 2^-27.7. */
static inline float af_poly_exp_rest_f32(float z) {
  float p = 0x1.6a2342p-10f;
  p = af_fma_f32(p, z, 0x1.123a6cp-7f);
  p = af_fma_f32(p, z, 0x1.5558f6p-5f);
  p = af_fma_f32(p, z, 0x1.555490p-3f);
  p = af_fma_f32(p, z, 0x1.fffffcp-2f);
  return p;
}

/* exp(r) - 1 = r + r^2 P(r), |r| <= log(2)/2: relative error 2^-28.7. */
static inline float af_poly_expm1_rest_f32(float z) {
  float p = 0x1.a03200p-13f;
  p = af_fma_f32(p, z, 0x1.6d7298p-10f);
  p = af_fma_f32(p, z, 0x1.11118ap-7f);
  p = af_fma_f32(p, z, 0x1.5554b0p-5f);
  p = af_fma_f32(p, z, 0x1.555554p-3f);
  p = af_fma_f32(p, z, 0x1.000000p-1f);
  return p;
}

/* log(1 + f) = f - f^2/2 + f^3 P(f), sqrt(1/2) <= 1 + f <= sqrt(2): relative error 2^-28.2. */
static inline float af_poly_log_rest_f32(float z) {
  float p = 0x1.1457a4p-4f;
  p = af_fma_f32(p, z, -0x1.de3c10p-4f);
  p = af_fma_f32(p, z, 0x1.e6f05ep-4f);
  p = af_fma_f32(p, z, -0x1.fc2206p-4f);
  p = af_fma_f32(p, z, 0x1.23376ap-3f);
  p = af_fma_f32(p, z, -0x1.555c4ep-3f);
  p = af_fma_f32(p, z, 0x1.99a4b6p-3f);
  p = af_fma_f32(p, z, -0x1.000006p-2f);
  p = af_fma_f32(p, z, 0x1.555548p-2f);
  return p;
}

/* tanh(u) = u + u^3 P(u^2), |u| <= 3/8 log(2): relative error 2^-27.9. */
static inline float af_poly_tanh_small_f32(float z) {
  float p = -0x1.a3a580p-5f;
  p = af_fma_f32(p, z, 0x1.10d950p-3f);
  p = af_fma_f32(p, z, -0x1.555506p-2f);
  return p;
}

/* -log(1 - erf(x)) = x + x P(x), 0 <= x <= 3.93: relative error 2^-26.9. */
static inline float af_poly_erf_decay_f32(float z) {
  float p = -0x1.3692e8p-17f;
  p = af_fma_f32(p, z, 0x1.ed698ep-14f);
  p = af_fma_f32(p, z, -0x1.4bc94ap-11f);
  p = af_fma_f32(p, z, 0x1.b50040p-10f);
  p = af_fma_f32(p, z, -0x1.5062eap-13f);
  p = af_fma_f32(p, z, -0x1.39cdc0p-6f);
  p = af_fma_f32(p, z, 0x1.a4fa5ep-4f);
  p = af_fma_f32(p, z, 0x1.45f2fap-1f);
  p = af_fma_f32(p, z, 0x1.06eba8p-3f);
  return p;
}

/* exp(r) - 1 = r + r^2 P(r), |r| <= log(2)/2: relative error 2^-25.8. */
static inline float af_poly_decay_f32(float z) {
  float p = 0x1.6becc2p-10f;
  p = af_fma_f32(p, z, 0x1.1227eep-7f);
  p = af_fma_f32(p, z, 0x1.555674p-5f);
  p = af_fma_f32(p, z, 0x1.5554b0p-3f);
  p = af_fma_f32(p, z, 0x1.fffffep-2f);
  return p;
}

/* exp(r) - 1 = r + r^2 P(r), |r| <= log(2)/2: relative error 2^-31.9. */
static inline double af_poly_wide_expm1_rest_f64(double z) {
  double p = 0x1.a03200c7e51b3p-13;
  p = af_fma_f64(p, z, 0x1.6d7298cbcd16fp-10);
  p = af_fma_f64(p, z, 0x1.11118a5831027p-7);
  p = af_fma_f64(p, z, 0x1.5554b09d8059fp-5);
  p = af_fma_f64(p, z, 0x1.555554eec732bp-3);
  p = af_fma_f64(p, z, 0x1.0000002618d75p-1);
  return p;
}

/* log((1 + s) / (1 - s)) = 2 s + s^3 P(s^2), |s| <= 0.1716: relative error 2^-43.9. */
static inline double af_poly_wide_atanh_rest_f64(double z) {
  double p = 0x1.9120ef1a53fcep-3;
  p = af_fma_f64(p, z, 0x1.c62a5e7ad7d6bp-3);
  p = af_fma_f64(p, z, 0x1.249413da13b94p-2);
  p = af_fma_f64(p, z, 0x1.999996a55326ap-2);
  p = af_fma_f64(p, z, 0x1.555555561f78cp-1);
  return p;
}

/* sin(pi/2 r) = r P(r^2), |r| <= 1/2: relative error 2^-37.7. */
static inline double af_poly_wide_sin_f64(double z) {
  double p = 0x1.4bbff0355ae50p-13;
  p = af_fma_f64(p, z, -0x1.32ca7cdeaa59dp-8);
  p = af_fma_f64(p, z, 0x1.466bba79d2495p-4);
  p = af_fma_f64(p, z, -0x1.4abbce56348bcp-1);
  p = af_fma_f64(p, z, 0x1.921fb5443ae25p+0);
  return p;
}

/* cos(pi/2 r) = P(r^2), |r| <= 1/2: relative error 2^-34.0. */
static inline double af_poly_wide_cos_f64(double z) {
  double p = 0x1.d99b031e1248ep-11;
  p = af_fma_f64(p, z, -0x1.55c4da45c7073p-6);
  p = af_fma_f64(p, z, 0x1.03c1da8ab48b1p-2);
  p = af_fma_f64(p, z, -0x1.3bd3cc6e1d3a8p+0);
  p = af_fma_f64(p, z, 0x1.ffffffff83714p-1);
  return p;
}

/* asin(x) = x + x^3 P(x^2), |x| <= 1/2: relative error 2^-35.8. */
static inline double af_poly_wide_asin_rest_f64(double z) {
  double p = 0x1.1bd3207aad024p-5;
  p = af_fma_f64(p, z, 0x1.ec242e21463a4p-8);
  p = af_fma_f64(p, z, 0x1.931f4626403b9p-6);
  p = af_fma_f64(p, z, 0x1.ed5d36c776533p-6);
  p = af_fma_f64(p, z, 0x1.6ddabdda084e2p-5);
  p = af_fma_f64(p, z, 0x1.3332aa1373b70p-4);
  p = af_fma_f64(p, z, 0x1.55555605b62bcp-3);
  return p;
}

/* atan(x) = x + x^3 P(x^2), |x| <= tan(pi/8): relative error 2^-35.3. */
static inline double af_poly_wide_atan_rest_f64(double z) {
  double p = 0x1.8448b88bd347ep-5;
  p = af_fma_f64(p, z, -0x1.5b1b7967b7f09p-4);
  p = af_fma_f64(p, z, 0x1.c460754b5ba27p-4);
  p = af_fma_f64(p, z, -0x1.247eb7ab5d93fp-3);
  p = af_fma_f64(p, z, 0x1.9999177b0d455p-3);
  p = af_fma_f64(p, z, -0x1.555554c476c33p-2);
  return p;
}

/* exp(x^2) erfc(x) = P((x - 3) / (x + 3)), 0 <= x <= 10.2: relative error 2^-34.9. */
static inline double af_poly_wide_erfcx_f64(double z) {
  double p = -0x1.c14368b85efc3p-18;
  p = af_fma_f64(p, z, -0x1.405899cb7711dp-17);
  p = af_fma_f64(p, z, 0x1.0c3dc35b638a3p-14);
  p = af_fma_f64(p, z, 0x1.6ae0d4d57b0dcp-15);
  p = af_fma_f64(p, z, -0x1.3927416b44c15p-11);
  p = af_fma_f64(p, z, 0x1.735e131471c96p-11);
  p = af_fma_f64(p, z, 0x1.17c98b06adf58p-8);
  p = af_fma_f64(p, z, -0x1.8fa5e984eab98p-6);
  p = af_fma_f64(p, z, 0x1.258b116fb26b1p-4);
  p = af_fma_f64(p, z, -0x1.336ffb3307294p-3);
  p = af_fma_f64(p, z, 0x1.f6ff20495ea91p-3);
  p = af_fma_f64(p, z, -0x1.4e102b9ebd544p-2);
  p = af_fma_f64(p, z, 0x1.6e9827d225a4ap-3);
  return p;
}

/* exp(r) = 1 + r + r^2 P(r), |r| <= log(2)/2: relative error 2^-56.5. */
static inline double af_poly_exp_rest_f64(double z) {
  double p = 0x1.ad7ed9a5371b5p-26;
  p = af_fma_f64(p, z, 0x1.28adce46c774dp-22);
  p = af_fma_f64(p, z, 0x1.71df264a1dd06p-19);
  p = af_fma_f64(p, z, 0x1.a01999ae1fbd4p-16);
  p = af_fma_f64(p, z, 0x1.a01a0129a49a9p-13);
  p = af_fma_f64(p, z, 0x1.6c16c1844acdfp-10);
  p = af_fma_f64(p, z, 0x1.1111111127ebcp-7);
  p = af_fma_f64(p, z, 0x1.55555555507f2p-5);
  p = af_fma_f64(p, z, 0x1.55555555554f9p-3);
  p = af_fma_f64(p, z, 0x1.000000000000ap-1);
  return p;
}

/* exp(r) - 1 = r + r^2 P(r), |r| <= log(2)/2: relative error 2^-59.7. */
static inline double af_poly_expm1_rest_f64(double z) {
  double p = 0x1.1ee86681e1633p-29;
  p = af_fma_f64(p, z, 0x1.af5ee879ff17ep-26);
  p = af_fma_f64(p, z, 0x1.27e53678b11d5p-22);
  p = af_fma_f64(p, z, 0x1.71ddf841fd9c4p-19);
  p = af_fma_f64(p, z, 0x1.a01a017b887ffp-16);
  p = af_fma_f64(p, z, 0x1.a01a01afe99cfp-13);
  p = af_fma_f64(p, z, 0x1.6c16c16c1f197p-10);
  p = af_fma_f64(p, z, 0x1.111111110f6aap-7);
  p = af_fma_f64(p, z, 0x1.555555555553ep-5);
  p = af_fma_f64(p, z, 0x1.5555555555559p-3);
  p = af_fma_f64(p, z, 0x1.000000p-1);
  return p;
}

/* tanh(x) = x + x^3 P(x^2), |x| <= 0.55: relative error 2^-60.1. */
static inline double af_poly_tanh_rest_f64(double z) {
  double p = 0x1.f293d2b4de442p-18;
  p = af_fma_f64(p, z, -0x1.144258fbbe456p-15);
  p = af_fma_f64(p, z, 0x1.8a05d762d8a0ep-14);
  p = af_fma_f64(p, z, -0x1.f38c806ab140dp-13);
  p = af_fma_f64(p, z, 0x1.353da9734af81p-11);
  p = af_fma_f64(p, z, -0x1.7da17117356afp-10);
  p = af_fma_f64(p, z, 0x1.d6d3b7a8f9143p-9);
  p = af_fma_f64(p, z, -0x1.226e34f148dc5p-7);
  p = af_fma_f64(p, z, 0x1.664f488066266p-6);
  p = af_fma_f64(p, z, -0x1.ba1ba1ba13fe1p-5);
  p = af_fma_f64(p, z, 0x1.11111111110adp-3);
  p = af_fma_f64(p, z, -0x1.5555555555555p-2);
  return p;
}

/* log((1 + s) / (1 - s)) = 2 s + s^3 P(s^2), |s| <= 0.1716: relative error 2^-60.5. */
static inline double af_poly_atanh_rest_f64(double z) {
  double p = 0x1.0f70afca720d3p-3;
  p = af_fma_f64(p, z, 0x1.0f5b4fa6f12c4p-3);
  p = af_fma_f64(p, z, 0x1.3b20bc0121273p-3);
  p = af_fma_f64(p, z, 0x1.745cddd740ef5p-3);
  p = af_fma_f64(p, z, 0x1.c71c725a24aa7p-3);
  p = af_fma_f64(p, z, 0x1.249249242a4d5p-2);
  p = af_fma_f64(p, z, 0x1.9999999999e0bp-2);
  p = af_fma_f64(p, z, 0x1.5555555555555p-1);
  return p;
}
#endif

// Why: a probe for every float function.
#include "probe.h"

#include "autofuse/error_function.h"
#include "autofuse/exponential.h"
#include "autofuse/hyperbolic.h"
#include "autofuse/inverse_trigonometric.h"
#include "autofuse/power.h"
#include "autofuse/trigonometric.h"

using namespace autofuse;

#define FLOAT1(name, Of, Bytes) PROBE1(name, float, float, Bytes(kTile), Of(dst, a, tmp, n));
FLOAT1("expm1", Expm1Of, Expm1OfTmpBytes);
FLOAT1("log1p", Log1pOf, Log1pOfTmpBytes);
FLOAT1("sigmoid", SigmoidOf, SigmoidOfTmpBytes);
FLOAT1("softplus", SoftplusOf, SoftplusOfTmpBytes);
FLOAT1("tanh", TanhOf, HyperbolicTmpBytes);
FLOAT1("sinh", SinhOf, HyperbolicTmpBytes);
FLOAT1("cosh", CoshOf, HyperbolicTmpBytes);
FLOAT1("asinh", AsinhOf, HyperbolicTmpBytes);
FLOAT1("acosh", AcoshOf, HyperbolicTmpBytes);
FLOAT1("atanh", AtanhOf, HyperbolicTmpBytes);
FLOAT1("erf", ErfOf, ErfOfTmpBytes);
FLOAT1("erfc", ErfcOf, ErfcOfTmpBytes);
FLOAT1("asin", AsinOf, InverseTrigTmpBytes);
FLOAT1("acos", AcosOf, InverseTrigTmpBytes);
FLOAT1("atan", AtanOf, InverseTrigTmpBytes);
FLOAT1("sin", SinOf, TrigTmpBytes);
FLOAT1("cos", CosOf, TrigTmpBytes);
FLOAT1("tan", TanOf, TrigTmpBytes);
PROBE2("pow", float, float, float, PowOfTmpBytes(kTile), PowOf(dst, a, b, tmp, n));
PROBE2("atan2", float, float, float, Atan2OfTmpBytes(kTile), Atan2Of(dst, a, b, tmp, n));

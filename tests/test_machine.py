"""Hardware records: the table, and what a CANN installation's ini files say instead."""
from dataclasses import FrozenInstanceError, replace

import pytest

from tf_autofuse.machine import DEFAULT_SOC, MACHINES, installed_machine, machine_for, usable_ub
from tf_autofuse.tiling import cost_table

INI = """[version]
SoC_version=%(soc)s
[SoCInfo]
ai_core_cnt=21
vector_core_cnt=42
memory_size=%(memory)s
l2_size=1048576
[AICoreSpec]
cube_freq=1700
ub_size=131072
[AICoreMemoryRates]
ddr_rate=31
l2_rate=100
l2_read_rate=99
l2_write_rate=77
"""


def write(folder, soc, inside="data", memory="17179869184", text=INI):
    path = folder / inside / "platform_config"
    path.mkdir(parents=True)
    (path / (soc + ".ini")).write_text(text % {"soc": soc, "memory": memory} if text is INI else text)
    return str(folder)


def test_every_record_is_complete_and_immutable():
    named = {"Ascend910B" + suffix for suffix in ("1", "2", "2C", "3", "4", "4-1")}
    assert named <= set(MACHINES)
    assert sum(soc.startswith("Ascend910_93") for soc in MACHINES) == 6
    for soc, machine in MACHINES.items():
        assert machine.soc == soc and machine.source and machine.vector_cores == 2 * machine.cube_cores
        assert all(value for value in vars(machine).values())
        assert usable_ub(machine, False) == 196352 and usable_ub(machine, True) == 188160
        with pytest.raises(FrozenInstanceError):
            machine.clock_mhz = 1


def test_the_published_dma_rates_stay_below_every_machine_s_memory():
    """So neither GM nor L2 can be what limits the modelled transfers: the rates were measured below them."""
    for machine in MACHINES.values():
        for cores in (1, machine.vector_cores):
            for rate in (cost_table.LOAD_RATE_LARGE, cost_table.LOAD_RATE_SMALL, cost_table.STORE_RATE):
                assert rate.alone + rate.shared / cores <= machine.ddr_rate <= machine.ub_ddr_rate


def test_names():
    assert machine_for("", {}).soc == DEFAULT_SOC == machine_for("910b4-1", {}).soc
    with pytest.raises(ValueError, match="unknown SoC 'Ascend310P3'; known: Ascend910B1, "):
        machine_for("Ascend310P3", {})


@pytest.mark.parametrize("variable", ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"])
@pytest.mark.parametrize("inside", ["data", "compiler/data", "aarch64-linux/data"])
def test_an_installation_wins_over_the_table(tmp_path, variable, inside):
    home = write(tmp_path, "Ascend910B2", inside)
    machine = machine_for("910b2", {variable: home})
    assert machine == replace(MACHINES["Ascend910B2"], vector_cores=42, cube_cores=21, l2_bytes=1 << 20,
                              hbm_bytes=1 << 34, clock_mhz=1700, ub_bytes=131072, ddr_rate=31,
                              l2_read_rate=99, l2_write_rate=77, source=machine.source)
    assert machine.source.startswith(home) and machine.source.endswith("Ascend910B2.ini")
    assert machine_for("910b3", {variable: home}) == MACHINES["Ascend910B3"]
    assert machine_for("910b2", {}) == MACHINES["Ascend910B2"]


def test_empty_values_come_from_the_table(tmp_path):
    home = write(tmp_path, "Ascend910B2C", memory="")
    assert machine_for("910b2c", {"ASCEND_HOME_PATH": home}).hbm_bytes == MACHINES["Ascend910B2C"].hbm_bytes


def test_a_chip_that_only_the_installation_knows(tmp_path):
    home = write(tmp_path, "Ascend910B9")
    assert machine_for("910b9", {"ASCEND_HOME_PATH": home}).vector_cores == 42
    assert installed_machine("Ascend910B8", home) is None


def test_a_broken_ini_is_as_none(tmp_path):
    home = write(tmp_path, "Ascend910B1", text="no section = 1\n[")
    assert machine_for("910b1", {"ASCEND_HOME_PATH": home}) == MACHINES["Ascend910B1"]
    assert machine_for("910b1", {"ASCEND_HOME_PATH": str(tmp_path / "nowhere")}) == MACHINES["Ascend910B1"]


def test_a_figure_that_is_none_is_named(tmp_path, caplog):
    from tf_autofuse import diagnostics

    diagnostics.forget()
    home = write(tmp_path, "Ascend910B3", text="[AICoreSpec]\nub_size=lots\ncube_freq=1700\n")
    machine = installed_machine("Ascend910B3", home, MACHINES["Ascend910B3"])
    assert machine.clock_mhz == 1700 and machine.ub_bytes == MACHINES["Ascend910B3"].ub_bytes
    assert "AICoreSpec ub_size=lots is no whole number above 0" in caplog.text

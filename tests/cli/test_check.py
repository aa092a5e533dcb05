"""`surrogate check`: through its console script, and wrong words of every kind."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner, Result
from scipy import stats

from cli.main import main

SCRIPT = Path(sys.executable).with_name("surrogate")
LAW = "forall t: 0 <= S(t) + I(t) <= N"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 400 epidemics in t.nc."""
    folder = tmp_path_factory.mktemp("check")
    words = ["simulate", "esirs", "-n", "400", "-q", "-o", str(folder / "t.nc")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, but for t.nc and a table."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.nc").write_bytes((made / "t.nc").read_bytes())
    (tmp_path / "wine.csv").write_text(
        '"fixed acidity";quality;colour\n7.4;5;red\n6.3;6;white\n8.1;7;red\n', encoding="utf-8"
    )
    return tmp_path


@pytest.fixture
def script(here: Path) -> Run:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SCRIPT, *words], cwd=here, capture_output=True, text=True, timeout=300
        )

    return run


def check(*words: str, code: int = 0, **settings: str) -> Result:
    done = CliRunner(env=settings).invoke(main, ["check", *words])
    assert done.exit_code == code, done.output
    assert code == 0 or isinstance(done.exception, SystemExit)
    return done


def refused(*words: str, code: int = 2) -> str:
    return check(*words, code=code).output


# --- through the console script -------------------------------------------------------------------


def test_check_end_to_end(script: Run, here: Path) -> None:
    done = script("check", "t.nc", "--where", LAW, "--where", "max(I) <= 40", "-o", "l.nc")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split()[:2] == ["rule", "satisfied"]
    assert lines[2].split("  ")[1] == LAW
    assert "100 %" in lines[2]
    assert "worst" in lines[3]
    assert "next: surrogate plot l.nc" in done.stderr
    with xr.open_dataset(here / "t.nc") as data, xr.open_dataset(here / "l.nc") as labelled:
        met = (data.I <= 40).all("time")
        assert f"{int(met.sum())} of 400 samples satisfy all 2 rules" in done.stderr
        np.testing.assert_array_equal(labelled.satisfied, met)
        assert labelled.satisfied.dtype == bool
        assert labelled["rule"].values.tolist() == [LAW, "max(I) <= 40"]
        np.testing.assert_array_equal(labelled.rule_robustness[:, 1], 40 - data.I.max("time"))
        xr.testing.assert_equal(labelled[["S", "I", "R"]], data)
        assert labelled.S.dtype == data.S.dtype
        first, second = labelled.attrs["history"].split("\n")
        assert first == data.attrs["history"]
        assert second.endswith("check t.nc --where 'forall t: 0 <= S(t) + I(t) <= N' --where "
                               "'max(I) <= 40' -o l.nc")  # fmt: skip
        assert labelled.attrs["surrogate_config"] == data.attrs["surrogate_config"]
    assert sorted(path.name for path in here.iterdir()) == ["l.nc", "t.nc", "wine.csv"]


def test_a_syntax_error_exits_with_2_and_an_impossible_rule_with_3(script: Run) -> None:
    misspelt = refused("t.nc", "--where", "forall t: I(t) <=", code=2)
    assert misspelt.splitlines()[-1].strip() == "^"
    impossible = script("check", "t.nc", "--where", "I(3) > 20 and always(I <= 10)")
    assert impossible.returncode == 3
    assert "I(3) > 20" in impossible.stderr
    assert "Traceback" not in impossible.stderr


def test_help_loads_no_torch() -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom cli.main import main\n"
        "for words in (['--help'], ['check', '--help'], ['check']):\n"
        "    CliRunner().invoke(main, words)\n"
        "print([name for name in ('torch', 'numba', 'xarray') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- what it reads and writes ---------------------------------------------------------------------


def test_json_and_quiet(here: Path) -> None:
    done = check("t.nc", "--where", "always(I <= 40)", "--json", "--quiet")
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["samples"] == 400
    assert found["rules"] == ["always(I <= 40)"]
    assert found["path"] is None
    (row,) = found["rows"]
    with xr.open_dataset("t.nc") as data:
        assert row["satisfied"] == float((data.I <= 40).all("time").mean())
        shares = (data.I <= 40).mean("sample")
        assert row["step_share"] == float(shares.min())
        assert row["step_time"] == float(data.time[row["step"]])


def test_rules_of_the_network_and_of_a_bridge(here: Path) -> None:
    found = json.loads(check("t.nc", "--consistency", "--json").stdout)
    assert "forall t: S(t) + I(t) + R(t) = 100" in found["rules"]
    assert found["rows"][0]["satisfied"] == 1
    found = json.loads(check("t.nc", "--bridge", "S0=90..100,I@0=5+-5", "--json").stdout)
    assert found["rules"] == ["90 <= S(0) <= 100 and I@0 = 5 +- 5"]


def test_rules_are_read_from_a_file(here: Path) -> None:
    (here / "rules.txt").write_text(
        "# the hospital's\nmax(I) <= 40   # beds\n\nforall t in [0, 20]:\n  # soon\n"
        "    exists u in [t, t + 9]:\n\tI(u) <= 10\n",
        encoding="utf-8",
    )
    done = check("t.nc", "--where", "@rules.txt", "--where", "S(0) >= 1", "--json")
    assert json.loads(done.stdout)["rules"] == [
        "max(I) <= 40",
        "forall t in [0, 20]: exists u in [t, t + 9]: I(u) <= 10",
        "S(0) >= 1",
    ]
    (here / "rules.txt").write_text("max(I) <= 40\n\nforall t:\n   I(t) <= <= 3\n")
    said = refused("t.nc", "--where", "@rules.txt")
    assert "rules.txt, line 3: " in said
    assert "\n     I(t) <= <= 3\n" in said
    (here / "rules.txt").write_text("# nothing\n")
    assert "holds no rules" in refused("t.nc", "--where", "@rules.txt")
    (here / "rules.txt").write_bytes(b"\xff\xfe\x00max")
    assert "is not text (UTF-8)" in refused("t.nc", "--where", "@rules.txt")
    assert "there is no file 'other.txt' of rules" in refused("t.nc", "--where", "@other.txt")
    assert "cannot read the rules" in refused("t.nc", "--where", "@.")


def test_people_at_a_terminal_get_a_drawn_table(here: Path) -> None:
    rules = ("--where", "always[0,9](I <= 40)", "--where", "S(0) >= 1")
    done = check("t.nc", *rules, FORCE_COLOR="1", COLUMNS="120")
    for part in ("always[0,9](I <= 40)", "worst", "satisfied", "─"):
        assert part in done.stdout


def test_end_decides_rules_that_read_past_the_last_step(here: Path) -> None:
    assert "past the last step" in refused("t.nc", "--where", "always[20,40](I <= 40)")
    for end in ("clip", "weak", "strong"):
        done = check("t.nc", "--where", "always[20,40](I <= 40)", "--end", end, "--json")
        share = json.loads(done.stdout)["rows"][0]["satisfied"]
        assert (share == 0) == (end == "strong")
    assert "unknown --end 'later' (have: clip, weak, strong)" in refused(
        "t.nc", "--where", "true", "--end", "later"
    )


def test_check_reads_and_replaces_zarr(here: Path) -> None:
    check("t.nc", "--where", "max(I) <= 40", "-o", "l.zarr")
    check("l.zarr", "--where", "max(I) <= 30", "-o", "l.nc")
    check("l.zarr", "--where", "max(I) <= 20", "-o", "l.zarr", "--force")
    with xr.open_dataset("t.nc") as data, xr.open_dataset("l.nc") as once:
        np.testing.assert_array_equal(once.satisfied, (data.I <= 30).all("time"))
        again = xr.open_zarr("l.zarr")
        np.testing.assert_array_equal(again.satisfied, (data.I <= 20).all("time"))
        assert again["rule"].values.tolist() == ["max(I) <= 20"]
        assert again.attrs["history"].count("\n") == 2


def test_a_file_may_replace_itself(here: Path) -> None:
    check("t.nc", "--where", "max(I) <= 40", "-o", "t.nc", "--force")
    with xr.open_dataset("t.nc") as data:
        np.testing.assert_array_equal(data.satisfied, (data.I <= 40).all("time"))


def test_check_labels_the_rows_of_a_table(here: Path) -> None:
    words = ("--where", '"fixed acidity" >= 7', "--where", "colour = red and quality in [5, 6]")
    done = check("wine.csv", *words, "-o", "l.csv")
    assert "1 of 3 samples" in done.stderr
    labelled = pd.read_csv("l.csv")
    assert labelled.satisfied.tolist() == [True, False, False]
    again = check("l.csv", "--where", "quality >= 6", "-o", "l.tsv")
    assert "next" not in again.stderr
    assert pd.read_csv("l.tsv", sep="\t").columns.tolist() == [
        "fixed acidity",
        "quality",
        "colour",
        "satisfied",
        "robustness",
    ]
    assert check("l.tsv", "--where", "quality >= 6").exit_code == 0
    (here / "wine.csv.gz").write_bytes(gzip.compress((here / "wine.csv").read_bytes()))
    assert "2 of 3 samples" in check("wine.csv.gz", "--where", "quality >= 6").stderr


def test_parquet_says_what_it_needs(here: Path) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        (here / "wine.parquet").write_bytes(b"PAR1")
        assert "pip install pyarrow" in refused("wine.parquet", "--where", "quality >= 6")
        assert "pip install pyarrow" in refused(
            "wine.csv", "--where", "quality >= 6", "-o", "l.parquet"
        )
    else:
        check("wine.csv", "--where", "quality >= 6", "-o", "l.parquet")
        assert "2 of 3" in check("l.parquet", "--where", "quality >= 6").stderr


# --- wrong words ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("t.nc",), "there is nothing to check DATA by; add a rule: --where"),
        (("other.nc", "--where", "true"), "there is no file 'other.nc'"),
        (("other.csv", "--where", "true"), "there is no file 'other.csv'"),
        (("folder.csv", "--where", "true"), "'folder.csv' is a folder, and CSV is a file"),
        (("wine.csv", "--where", "quality[2] > 3"), "no such instance; write quality\n"),
        (("t.nc", "--where", ""), "the formula is empty"),
        (("t.nc", "--where", "forall t: J(t) <= 3"), "'J' (have: I, R, S)"),
        (("t.nc", "--where", "I <= 3"), "does not say when"),
        (("t.nc", "--where", "I(3)"), "compare it with something"),
        (("t.nc", "--where", "true", "--where", "J(0) = 1"), "in the rule J(0) = 1"),
        (("t.nc", "--bridge", "J3=2"), "--bridge: unknown signal 'J'"),
        (("t.nc", "--bridge", "S25"), "--bridge: "),
        (("t.nc", "--bridge", "S250=3"), "past the last step"),
        (("wine.csv", "--where", "quallity >= 3"), "did you mean 'quality'"),
        (("wine.csv", "--where", "colour = pink"), "unknown category of colour"),
        (("wine.csv", "--where", "quality(3) = 1"), "one value a sample"),
        (("wine.csv", "--bridge", "quality3=1"), "--bridge states values at steps"),
        (("wine.csv", "--consistency"), "does not describe the network"),
        (("t.nc", "--where", "true", "-o", "l.txt"), "must end in .nc or .zarr or .csv"),
        (("wine.csv", "--where", "true", "-o", "l.nc"), "must end in .csv or .tsv or .parquet"),
        (("t.nc", "--where", "true", "-o", "t.nc"), "exists; choose another name"),
        (("t.nc", "--where", "true", "-o", "no/l.nc"), "there is no folder"),
    ],
)
def test_bad_arguments_of_check_are_refused(here: Path, words: tuple[str, ...], says: str) -> None:
    (here / "folder.csv").mkdir()
    assert says in refused(*words)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", b"", "cannot read 'a.csv' as a table"),
        ("a.csv", b"x,y\n", "is empty"),
        ("a.csv", b"x,y\n1,2,3\n1,2,3\n", "cannot read 'a.csv' as a table"),
        ("a.csv", b"x,y\n1,2\n1,2,3\n", "cannot read 'a.csv' as a table"),
        ("a.csv", b"\xff\xfex\x00,y\n1,2\n", "cannot read 'a.csv' as CSV"),
        ("a.csv.gz", b"x,y\n1,2\n", "cannot read 'a.csv.gz' as CSV"),
        ("a.nc", b"x", "cannot read 'a.nc' as netCDF"),
        ("a.txt", b"x", "(have: .nc, "),
    ],
)
def test_files_that_cannot_be_judged(here: Path, name: str, content: bytes, says: str) -> None:
    (here / name).write_bytes(content)
    assert says in refused(name, "--where", "y >= 1")


def test_trajectories_with_gaps_and_foreign_descriptions(here: Path) -> None:
    with xr.open_dataset("t.nc") as data:
        broken = data.load().copy()
    broken["S"] = broken.S.astype(float)
    broken["S"][7, 3] = np.nan
    broken.to_netcdf("gaps.nc")
    said = refused("gaps.nc", "--where", LAW)
    assert "S has missing values in 1 of 400 samples, first at sample 7, step 3" in said
    for about in ("", "{", '{"network": []}', '{"network": {}}'):
        data.assign_attrs(surrogate_config=about).to_netcdf("foreign.nc", mode="w")
        said = refused("foreign.nc", "--consistency")
        assert "does not describe the network" in said or "nothing can be derived" in said
        check("foreign.nc", "--where", "max(I) <= 40")
    data.assign_attrs(surrogate_config='{"network": {"species": 3}}').to_netcdf("odd.nc")
    assert "species is a mapping" in refused("odd.nc", "--consistency")


def test_a_damaged_file_is_told(here: Path) -> None:
    damaged = bytearray((here / "t.nc").read_bytes())
    middle = len(damaged) // 2
    damaged[middle:] = bytes(len(damaged) - middle)
    (here / "t.nc").write_bytes(damaged)
    assert "cannot read" in refused("t.nc", "--where", "max(I) <= 40")


def test_an_undefined_margin_counts_as_not_met_and_is_reported(here: Path) -> None:
    result = check("t.nc", "--where", "log(I(0) - 200) <= 3")
    assert result.exit_code == 0, result.output
    assert "0 of 400 samples satisfy" in result.output
    assert "undefined there" in result.output
    guarded = check("t.nc", "--where", "I(0) <= 200 or log(I(0) - 200) <= 3")
    assert "400 of 400 samples satisfy" in guarded.output


def test_the_tolerance_of_real_equalities_is_reported(here: Path) -> None:
    Path("tiny.csv").write_text("conc\n2e-9\n5e-4\n9e-9\n", encoding="utf-8")
    result = check("tiny.csv", "--where", "conc = 5e-4")
    assert "1 of 3 samples satisfy" in result.output
    assert "counts as met within 5e-07" in result.output
    Path("people.csv").write_text("n,flag\n5000.0,True\n4996.0,False\n", encoding="utf-8")
    for rule in ("n = 5000", "flag = true", "flag = 1", 'flag = "True"', "flag != false"):
        assert "1 of 2 samples satisfy" in check("people.csv", "--where", rule).output, rule


# --- observations ---------------------------------------------------------------------------------


def test_observations_have_log_densities_and_no_verdicts(here: Path) -> None:
    rules = [
        "--where",
        "max(I) <= 60 and 7 ~ poisson(0.9*I(3))",
        "--where",
        "3 ~ binomial(I(5), .5)",
    ]
    done = check("t.nc", *rules, "-o", "judged.nc")
    assert "log mean likelihood" in done.output
    assert "samples satisfy the rule" in done.output
    found = xr.load_dataset(here / "judged.nc")
    assert found.sizes["rule"] == 1
    counts = found["I"].values
    expected = stats.poisson(0.9 * counts[:, 3]).logpmf(7) + stats.binom(counts[:, 5], 0.5).logpmf(
        3
    )
    np.testing.assert_allclose(found["log_likelihood"].values, expected)


def test_observations_alone_are_told_as_json(here: Path) -> None:
    done = check("t.nc", "--where", "7 ~ poisson(0.9*I(3))", "--json", "-q")
    told = json.loads(done.output)
    assert told["rows"] == []
    (row,) = told["observations"]
    counts = xr.load_dataset(here / "t.nc")["I"].values[:, 3]
    logs = stats.poisson(0.9 * counts).logpmf(7)
    assert row["max"] == pytest.approx(logs.max())
    assert row["log_mean_likelihood"] == pytest.approx(np.log(np.exp(logs).mean()))
    refused = check("t.nc", "--where", "7 ~ normal(I(3), -1 - S(2))", code=3)
    assert "must be one of the numbers > 0" in refused.output
    table = check("wine.csv", "--where", "6 ~ normal(quality, 1)", "-o", "judged.csv", "-q")
    assert "observation" in table.output
    columns = list(pd.read_csv(here / "judged.csv", sep=None, engine="python").columns)
    assert "log_likelihood" in columns
    assert "satisfied" not in columns

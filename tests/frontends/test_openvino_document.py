"""Files of OpenVINO IR that are damaged, hostile or empty."""

import pytest

from tests.frontends.told import check_refused
from tests.support.openvino_ir import AXIS, edge, layer, net, parameter, read, select

pytest.importorskip("defusedxml")

ENTITY = '<!DOCTYPE net [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><net name="&b;"/>'
OUTSIDE = '<!DOCTYPE net [<!ENTITY a SYSTEM "file:///etc/hostname">]><net>&a;</net>'
GOOD = select("4", "4", "")
CIRCLE = [layer(i, "LogicalNot", [("BOOL", [4])], [("BOOL", [4])]) for i in (0, 1)]
DEEP = '<layers><layer id="0"><body>' * 33 + "</body></layer></layers>" * 33
ODD = [parameter(0, "FP32", "?"), layer(1, "Abs", [("FP32", [-1])], [("FP32", [-2])])]


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "no OpenVINO IR"),
        (GOOD[: len(GOOD) // 2], "no OpenVINO IR"),
        ("<html></html>", "expected an OpenVINO IR"),
        (ENTITY, "document type or entities"),
        (OUTSIDE, "document type or entities"),
        ("<net>" + "<a>" * 5000, "no OpenVINO IR"),
        (GOOD.replace('<layer id="1"', '<layer id="0"'), "two layers have the id"),
        (GOOD.replace("<output>", "<output/><output>", 1), "two parts of one tag"),
        (GOOD.replace('from-layer="1"', 'from-layer="9"'), "'9', which is not there"),
        (GOOD.replace(edge((1, 0), (3, 1)), edge((1, 7), (3, 1))), "which has none"),
        (GOOD.replace('to-port="2"', 'to-port="8"'), "no edge leads to port 2"),
        (GOOD.replace("<dim>4</dim>", "<dim>x</dim>"), "no int"),
        (f"<net>{DEEP}</net>", "more than 32 deep"),
        (GOOD.replace("</edges>", f"{edge((1, 0), (3, 1))}</edges>"), "two edges lead to port 1"),
        (net(ODD, [((0, 0), (1, 0))]), "has the dims [-2]"),
        *((GOOD.replace('shape="4"', f'shape="{each}"'), "expected a size")
          for each in ("4;5", f"{4:020}")),
        (select("4", "5", ""), "do not broadcast"),
        (select("4", "4", "", auto_broadcast="both"), "expected one of none, numpy, pdpd"),
        *((select("4", "4", "4", auto_broadcast="pdpd", **{AXIS: each}), "expected an int")
          for each in ("one", f"{0:020}")),
        (select("4", "4", "").replace("BOOL", "FP32").replace("boolean", "f32"), "expected bool"),
        (select("4", "1,4", "4", auto_broadcast="none"), "net#3"),
        (net(CIRCLE, [((0, 1), (1, 0)), ((1, 1), (0, 0))]), "cycle"),
        (GOOD.replace("<dim>4</dim></port><p", "<dim>5</dim></port><p", 1), "expected the same"),
    ],
)  # fmt: skip
def test_bad_file_is_one_clear_line(tmp_path, text, said):
    check_refused(read, text, tmp_path, said)


def test_elements_of_others_are_passed_over(tmp_path):
    """Those in them as well, whatever they are called."""
    more = GOOD.replace(
        "</layer>", '<rt_info><data/><input>x</input><layer id="0"/></rt_info></layer>'
    )
    assert read(more, tmp_path) == read(GOOD, tmp_path)

"""The script that draws the plots in the browser: Vega-Lite, Vega and Vega-Embed, about 900 kB, without a line of ours.

The script comes out of the wheel vl-convert-python, which has the three libraries inside: nothing is fetched, neither
when the report is made nor when the page is read.
"""

from __future__ import annotations

from typing import Final

import vl_convert

_ENTRY: Final = "window.vegaEmbed = vegaEmbed;"  # what the script leaves for report.js


def script() -> str:
    return str(vl_convert.javascript_bundle(_ENTRY))

"""The report: gold tables become one HTML page.

Pure, in this order: rows of gold (`gold`) → numbers over a span, with gaps (`part`) → sections of figures with a
finding, a plot, a summary and a table (`sections`) → HTML (`page`). Two modules do more: `reading` reads the tables and
`drawing` compiles the plots, so those two alone need packages of the extra `pipeline`.
"""

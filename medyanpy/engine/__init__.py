"""Parts of a Context: store (all arrays), schedule (letters, beads and forces as a program), measure, faults.

Beside them what watches or uses them: worksheets, work, runaways, needles, minimisation.
"""

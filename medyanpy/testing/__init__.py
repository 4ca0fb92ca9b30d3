"""Checks of what forces and jumps must satisfy, and statistics with a stated rate of false alarms: for our tests and
yours."""

from medyanpy.testing.forces import ForceCase, check_box, check_flips, check_force
from medyanpy.testing.installation import Finding, check_installation
from medyanpy.testing.jumps import JumpCase, check_jump, check_jumps_together
from medyanpy.testing.statistics import (
    FALSE_ALARM_RATE,
    POWER,
    check_chi_square,
    check_mean,
    check_same_distribution,
    check_same_mean,
    check_variance,
    statistical_inefficiency,
)  # fmt: skip
from medyanpy.testing.words import thermal

__all__ = [
    "FALSE_ALARM_RATE", "POWER", "Finding", "ForceCase", "JumpCase", "check_box", "check_chi_square", "check_flips",
    "check_force", "check_installation", "check_jump", "check_jumps_together", "check_mean", "check_same_distribution",
    "check_same_mean", "check_variance", "statistical_inefficiency", "thermal",
]  # fmt: skip

"""What a force must satisfy, and statistics with a stated rate of false alarms: for our tests and for yours."""

from medyanpy.testing.forces import ForceCase, check_force
from medyanpy.testing.statistics import FALSE_ALARM_RATE, check_chi_square, check_mean, check_variance
from medyanpy.testing.words import thermal

__all__ = [
    "FALSE_ALARM_RATE", "ForceCase", "check_chi_square", "check_force", "check_mean", "check_variance",
    "thermal",
]  # fmt: skip

"""Walls of the house: arguments, names, checks of numbers, quaternions, threads, signals, turns, bars of progress."""

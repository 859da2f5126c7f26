"""Calibration of the limit: honest evaluations must pass it, planted errors must not."""

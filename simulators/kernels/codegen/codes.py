"""What a kernel writes to report[0] when it stops early."""

BAD_RATE = 1  # a rate is negative or not a number, or a count would become negative
TOO_LARGE = 2  # a count is past 2^53, where float64 no longer holds every whole number
TOO_MANY_EVENTS = 3  # the event budget of a trajectory is spent
EVENT_LOOP = 4  # events keep triggering each other
BAD_ASSIGNMENT = 5  # an event assigns a species something that is not a count
STEP_TOO_SMALL = 6  # the ODE solver cannot go on

MAX_SIMULTANEOUS_EVENTS = 10_000  # events at one instant before they count as an endless loop

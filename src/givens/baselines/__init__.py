"""The rivals, implemented as well as we know how: a comparison is worth what the rival's code is worth."""

"""The thesis on CFS bandwidth control, and our series: what each claims, measured in counted guests."""

"""The methods of the package, one file each: name, summary, settings. See `guidance.method`.

A file placed here is a method: nothing else lists them. None of these files imports torch.
"""

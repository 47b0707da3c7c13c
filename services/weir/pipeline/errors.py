"""The exception of the pipeline's commands."""


class PipelineError(Exception):
    """A command cannot do its work. The text is one line for people, and names what helps."""

class Error(RuntimeError):
    """What the engine reports. `code` says what kind of failure it is, for example "not_found",
    "corrupt_data", "invalid_argument", "unsupported", "out_of_memory", "unavailable"."""

    def __init__(self, message: str, code: str = "internal") -> None:
        super().__init__(message)
        self.code = code

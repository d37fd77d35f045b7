# Installation: headers, library, program and the package configuration.

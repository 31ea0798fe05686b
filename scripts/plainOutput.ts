// Imported first: tools decide about colours when they load, and take a CI machine for a terminal.
if (!process.stdout.isTTY) process.env["NO_COLOR"] ??= "1"

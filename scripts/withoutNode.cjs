// `withoutNode.cjs FOLDER`: writes the repository's manifest, lock file and npm settings to a folder, without the packages of Node.
// fetchNode.cjs installs Node, because it needs fewer files of the package than npm writes.
const { copyFileSync, readFileSync, writeFileSync } = require("node:fs")
const path = require("node:path")

const [folder] = process.argv.slice(2)
const root = path.join(__dirname, "..")
const read = (file) => JSON.parse(readFileSync(path.join(root, file), "utf8"))
const write = (file, content) => writeFileSync(path.join(folder, file), JSON.stringify(content))

const { optionalDependencies, ...manifest } = read("package.json")
const lock = read("package-lock.json")
delete lock.packages[""].optionalDependencies
for (const name of Object.keys(optionalDependencies)) delete lock.packages[`node_modules/${name}`]

write("package.json", manifest)
write("package-lock.json", lock)
copyFileSync(path.join(root, ".npmrc"), path.join(folder, ".npmrc"))

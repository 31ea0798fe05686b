// `fetchNode.cjs FOLDER`: puts the pinned Node of this platform into a folder, of its package only the program, its licence
// and its manifest. npm fetches the package, and it must be the one that the lock file names. A platform that has none
// gets none: install.sh looks for another Node then.
const { execFileSync } = require("node:child_process")
const { createHash } = require("node:crypto")
const { mkdirSync, readdirSync, readFileSync, rmSync } = require("node:fs")
const path = require("node:path")

const [folder] = process.argv.slice(2)
const { packages } = JSON.parse(readFileSync(path.join(__dirname, "../package-lock.json"), "utf8"))

/** The package of this platform, as the lock file has it. */
const found = Object.entries(packages).find(([at, { cpu, os }]) =>
  at.startsWith("node_modules/node-") && [os].flat().includes(process.platform) && [cpu].flat().includes(process.arch)
)

const fetchNode = (name, { integrity, version }) => {
  const npm = ["pack", `${name}@${version}`, "--pack-destination", folder, "--prefer-offline", "--silent"]
  execFileSync("npm", npm, { stdio: "inherit", shell: process.platform === "win32" })
  const tarball = path.join(folder, readdirSync(folder).find((file) => file.endsWith(".tgz")))
  const [algorithm] = integrity.split("-")
  if (`${algorithm}-${createHash(algorithm).update(readFileSync(tarball)).digest("base64")}` !== integrity) {
    throw new Error(`${name} ${version} is not the package that package-lock.json names`)
  }
  mkdirSync(path.join(folder, name))
  const files = ["bin/node", "LICENSE", "package.json"].map((file) => `package/${file}`)
  execFileSync("tar", ["-xzf", tarball, "-C", path.join(folder, name), "--strip-components=1", ...files])
  rmSync(tarball)
}

if (found !== undefined) fetchNode(found[0].slice("node_modules/".length), found[1])

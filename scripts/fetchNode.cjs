// `fetchNode.cjs FOLDER`: writes the pinned Node of this platform to a folder: the program, its license and its manifest. The package
// comes from npm's cache or from the registry, and must have the checksum of the lock file. On a platform without such a package it
// writes nothing, and install.sh looks for another Node.
const { execFileSync } = require("node:child_process")
const { createHash } = require("node:crypto")
const { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } = require("node:fs")
const { homedir } = require("node:os")
const path = require("node:path")

const [folder] = process.argv.slice(2)
const { packages } = JSON.parse(readFileSync(path.join(__dirname, "../package-lock.json"), "utf8"))

/** The lock file's entry for this platform's Node. */
const found = Object.entries(packages).find(([at, { cpu, os }]) =>
  at.startsWith("node_modules/node-") && [os].flat().includes(process.platform) && [cpu].flat().includes(process.arch)
)

const isIntact = (tarball, { integrity }) => {
  const [algorithm] = integrity.split("-")
  return `${algorithm}-${createHash(algorithm).update(readFileSync(tarball)).digest("base64")}` === integrity
}

/** The package's path in npm's cache, which names files by their checksum. */
const inCache = ({ integrity }) => {
  const [algorithm, digest] = integrity.split("-")
  const hex = Buffer.from(digest, "base64").toString("hex")
  const cache = process.env.npm_config_cache || path.join(homedir(), ".npm")
  return path.join(cache, "_cacache/content-v2", algorithm, hex.slice(0, 2), hex.slice(2, 4), hex.slice(4))
}

const packed = (name, lock) => {
  const npm = ["pack", `${name}@${lock.version}`, "--pack-destination", folder, "--prefer-offline", "--silent"]
  execFileSync("npm", npm, { stdio: "inherit", shell: process.platform === "win32" })
  const tarball = path.join(folder, readdirSync(folder).find((file) => file.endsWith(".tgz")))
  if (!isIntact(tarball, lock)) throw new Error(`${name} ${lock.version} is not the package that package-lock.json names`)
  return tarball
}

const fetchNode = (name, lock) => {
  const cached = inCache(lock)
  const tarball = existsSync(cached) && isIntact(cached, lock) ? cached : packed(name, lock)
  mkdirSync(path.join(folder, name))
  const files = ["bin/node", "LICENSE", "package.json"].map((file) => `package/${file}`)
  execFileSync("tar", ["-xzf", tarball, "-C", path.join(folder, name), "--strip-components=1", ...files])
  if (tarball !== cached) rmSync(tarball)
}

if (found !== undefined) fetchNode(found[0].slice("node_modules/".length), found[1])

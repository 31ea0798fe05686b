// Prints which locked packages are in node_modules: `all`; `run`, at least the packages to run and bundle the service; `more`, fewer than
// that but also other packages; `none`. The pinned Node does not count. It does not matter which tool installed them.
const { existsSync, readFileSync, readdirSync } = require("node:fs")
const path = require("node:path")

const root = path.join(__dirname, "..")
const modules = path.join(root, "node_modules")

const packagesOf = (file) => {
  try {
    return JSON.parse(readFileSync(path.join(root, file), "utf8")).packages
  } catch {
    return undefined
  }
}

/** Whether an npm list such as `os` allows a value. `!value` excludes it. */
const has = (list, value) => {
  const names = [list].flat()
  return !names.includes(`!${value}`) && (names.includes(value) || names.every((name) => name.startsWith("!")))
}

const libc = process.report.getReport().header.glibcVersionRuntime === undefined ? "musl" : "glibc"

const isForThisMachine = ({ cpu, libc: wanted, os }) =>
  (os === undefined || has(os, process.platform)) && (cpu === undefined || has(cpu, process.arch)) &&
  (wanted === undefined || process.platform !== "linux" || has(wanted, libc))

/** npm's own list of installed packages. */
const present = packagesOf("node_modules/.package-lock.json")
const { "": project, ...locked } = packagesOf("package-lock.json")

const isPresent = ([at, { integrity, version }]) =>
  present?.[at]?.version === version && present[at].integrity === integrity &&
  existsSync(path.join(root, at, "package.json"))

/** The packages that this machine needs. Optional packages without a platform belong to optional packages with one. */
const wanted = Object.entries(locked).filter(([at, entry]) =>
  isForThisMachine(entry) && (entry.optional !== true || entry.os !== undefined) &&
  !(at.slice("node_modules/".length) in project.optionalDependencies)
)

/** Whether node_modules has development packages, or packages that npm does not list. */
const hasMore = () =>
  present === undefined
    ? existsSync(modules) && readdirSync(modules).some((name) => !name.startsWith("."))
    : Object.values(present).some(({ dev }) => dev === true)

const state = () => {
  if (wanted.every(isPresent)) return "all"
  if (wanted.filter(([, { dev }]) => dev !== true).every(isPresent)) return "run"
  return hasMore() ? "more" : "none"
}

process.stdout.write(state())

// Prints which of the locked packages are in node_modules, whatever installed them: `all`; `run`, at least what running and
// bundling the service needs; `more`, less than that, but packages of other kinds; `none`. The pinned Node does not count.
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

/** Whether a list of npm's, such as `os`, has a value: `!value` takes one out. */
const has = (list, value) => {
  const names = [list].flat()
  return !names.includes(`!${value}`) && (names.includes(value) || names.every((name) => name.startsWith("!")))
}

const libc = process.report.getReport().header.glibcVersionRuntime === undefined ? "musl" : "glibc"

const isForThisMachine = ({ cpu, libc: wanted, os }) =>
  (os === undefined || has(os, process.platform)) && (cpu === undefined || has(cpu, process.arch)) &&
  (wanted === undefined || process.platform !== "linux" || has(wanted, libc))

/** What npm says that it has installed. */
const present = packagesOf("node_modules/.package-lock.json")
const { "": project, ...locked } = packagesOf("package-lock.json")

const isPresent = ([at, { integrity, version }]) =>
  present?.[at]?.version === version && present[at].integrity === integrity &&
  existsSync(path.join(root, at, "package.json"))

/** The packages to have here. Optional ones that are for every machine are parts of some that are not. */
const wanted = Object.entries(locked).filter(([at, entry]) =>
  isForThisMachine(entry) && (entry.optional !== true || entry.os !== undefined) &&
  !(at.slice("node_modules/".length) in project.optionalDependencies)
)

/** Whether there are packages that an installation for running does not have, or that npm does not know of. */
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

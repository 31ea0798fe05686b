// The packages whose code is in a bundle, found by the paths of the bundled modules.
import { existsSync, readdirSync, readFileSync } from "node:fs"
import path from "node:path"

/** An installed package. */
export interface Package {
  readonly name: string
  readonly version: string
  readonly license: string
  /** The license's text and required notices. Empty if the package has no such file. */
  readonly text: string
}

const inModules = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/

const legalFile = /^(?:licen[cs]e|copying|notice)(?:[.-]|$)/i

/** License texts for packages that ship none, by the first word of the name: `redis` covers all of `@redis`. */
const supplied = path.join(import.meta.dirname, "licenses")

const suppliedText = (name: string): string => {
  const file = path.join(supplied, `${name.replace(/^@/, "").replace(/\/.*$/, "")}.txt`)
  return existsSync(file) ? readFileSync(file, "utf8").trim() : ""
}

/** Reads a package by its folder. */
export const readPackage = (folder: string): Package => {
  const { license, name, version } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8")) as {
    readonly name: string
    readonly version: string
    readonly license?: string
  }
  const texts = readdirSync(folder).filter((file) => legalFile.test(file)).sort()
    .map((file) => readFileSync(path.join(folder, file), "utf8").trim())
  return { name, version, license: license ?? "unknown", text: texts.join("\n\n") || suppliedText(name) }
}

/** The package folders of the given modules. */
const foldersOf = (modules: ReadonlyArray<string>): ReadonlySet<string> =>
  new Set(modules.flatMap((id) => inModules.exec(id.replace(/^\0/, ""))?.[1] ?? []))

const compare = (a: string, b: string): number => a < b ? -1 : a > b ? 1 : 0

/** The packages of the given modules (absolute paths), sorted by name and version. */
export const packagesOf = (modules: ReadonlyArray<string>): Array<Package> =>
  [...foldersOf(modules)].map(readPackage).sort((a, b) => compare(a.name, b.name) || compare(a.version, b.version))

const rule = "=".repeat(80)

/** The text of all license notices. */
export const noticesOf = (packages: ReadonlyArray<Package>): string =>
  [
    "Model Gateway contains the packages below.",
    ...packages.map(({ license, name, text, version }) => `${rule}\n${name} ${version} (${license})\n\n${text}`)
  ].join("\n\n") + "\n"

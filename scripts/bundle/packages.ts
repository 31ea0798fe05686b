// The packages whose code is in a bundle, found by the modules that the bundler took in.
import { existsSync, readdirSync, readFileSync } from "node:fs"
import path from "node:path"

/** A package as it is installed. */
export interface Package {
  readonly name: string
  readonly version: string
  readonly license: string
  /** The licence's text, and the notices that must go with it; empty where there is none to be found. */
  readonly text: string
}

const inModules = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/

const legalFile = /^(?:licen[cs]e|copying|notice)(?:[.-]|$)/i

/** Texts of packages that come without one, by the first word of their names: `redis` and all of `@redis`. */
const supplied = path.join(import.meta.dirname, "licenses")

const suppliedText = (name: string): string => {
  const file = path.join(supplied, `${name.replace(/^@/, "").replace(/\/.*$/, "")}.txt`)
  return existsSync(file) ? readFileSync(file, "utf8").trim() : ""
}

/** A package by its folder. */
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

/** The folders of the packages that modules belong to. */
const foldersOf = (modules: ReadonlyArray<string>): ReadonlySet<string> =>
  new Set(modules.flatMap((id) => inModules.exec(id.replace(/^\0/, ""))?.[1] ?? []))

const compare = (a: string, b: string): number => a < b ? -1 : a > b ? 1 : 0

/** The packages that modules (absolute paths) belong to, by name and version. */
export const packagesOf = (modules: ReadonlyArray<string>): Array<Package> =>
  [...foldersOf(modules)].map(readPackage).sort((a, b) => compare(a.name, b.name) || compare(a.version, b.version))

const rule = "=".repeat(80)

/** The notices: who wrote what is in the gateway, and under which terms. */
export const noticesOf = (packages: ReadonlyArray<Package>): string =>
  [
    "Model Gateway contains the packages below.",
    ...packages.map(({ license, name, text, version }) => `${rule}\n${name} ${version} (${license})\n\n${text}`)
  ].join("\n\n") + "\n"

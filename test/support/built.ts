/**
 * What tests build of the sources: once for the same contents, then read from `node_modules/.cache/builds`. A whole run (`--all`) builds anew.
 */
import { createHash } from "node:crypto"
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import { deserialize, serialize } from "node:v8"
import { isWhole } from "./effort.ts"

const root = path.join(import.meta.dirname, "../..")
const folder = path.join(root, "node_modules/.cache/builds")

/** What builds are made of: folders and files of the repository. */
const inputs = ["src", "docs", "scripts", "packaging"]

/** The files of the repository's own folder count too: manifests, configurations, texts. */
const inputFiles = (): ReadonlyArray<string> => [
  ...readdirSync(root, { withFileTypes: true }).filter((each) => each.isFile()).map(({ name }) => name),
  ...inputs.flatMap((name) =>
    readdirSync(path.join(root, name), { recursive: true, withFileTypes: true }).filter((each) => each.isFile())
      .map((each) => path.relative(root, path.join(each.parentPath, each.name)))
  )
]

/** A hash of the contents of all inputs; modification times do not count. */
const contentHash = (): string => {
  const hash = createHash("sha256").update(`${process.version} ${root}\n`)
  for (const file of inputFiles().toSorted()) hash.update(`${file}\n`).update(readFileSync(path.join(root, file)))
  return hash.digest("hex").slice(0, 20)
}

/** The result of `build`, which structured cloning copies, for the present sources. `name` says which build it is. */
export const built = async <A>(name: string, build: () => Promise<A>): Promise<A> => {
  if (isWhole) return build()
  const file = `${name}-${contentHash()}.bin`
  mkdirSync(folder, { recursive: true })
  const known = readdirSync(folder)
  if (known.includes(file)) return deserialize(readFileSync(path.join(folder, file))) as A
  const made = await build()
  // It appears as a whole, also to a run beside this one. Those of other sources have had their day.
  const whole = path.join(folder, `.${file}-${process.pid}`)
  writeFileSync(whole, serialize(made))
  renameSync(whole, path.join(folder, file))
  for (const each of known) if (each.startsWith(`${name}-`)) rmSync(path.join(folder, each), { force: true })
  return made
}

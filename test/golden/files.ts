/** The golden data on disk. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"

const folder = new URL("../fixtures/golden/", import.meta.url)

/** Their paths below the folder, in order. */
export const listGolden = (): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name, parentPath }) => `${parentPath.slice(folder.pathname.length)}/${name}`)
    .toSorted()

export const readGolden = (path: string): string => readFileSync(new URL(path, folder), "utf8")

/** Puts these files in the place of all that are there. */
export const writeGolden = (files: ReadonlyMap<string, string>): void => {
  rmSync(folder, { recursive: true, force: true })
  for (const [path, text] of files) {
    const url = new URL(path, folder)
    mkdirSync(dirname(url.pathname), { recursive: true })
    writeFileSync(url, text)
  }
}

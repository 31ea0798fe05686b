// `npm run build`: writes the npm package to the folder dist/package, as npm would install it. A failed build leaves the previous
// folder in place.
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import { root } from "./release/facts.ts"
import { buildPackage } from "./release/npmPackage.ts"

const dist = path.join(root, "dist")
const folder = path.join(dist, "package")

const { files } = await buildPackage({ commit: null, date: null }, "quick")
mkdirSync(dist, { recursive: true })
const made = mkdtempSync(path.join(dist, ".package-"))
try {
  for (const [name, content] of files) {
    mkdirSync(path.dirname(path.join(made, "new", name)), { recursive: true })
    writeFileSync(path.join(made, "new", name), content)
  }
  if (existsSync(folder)) renameSync(folder, path.join(made, "old"))
  renameSync(path.join(made, "new"), folder)
} finally {
  rmSync(made, { recursive: true, force: true })
}

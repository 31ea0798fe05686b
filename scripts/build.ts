// `npm run build`: the npm package as a folder, dist/package, as somebody gets it who installs it.
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import { root } from "./release/facts.ts"
import { buildPackage } from "./release/npmPackage.ts"

const folder = path.join(root, "dist/package")

rmSync(folder, { recursive: true, force: true })
const { files } = await buildPackage({ commit: null, date: null }, "quick")
for (const [name, content] of files) {
  mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
  writeFileSync(path.join(folder, name), content)
}

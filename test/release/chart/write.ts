/** `npm run chart`: lets Helm check and render the chart. `HELM` names another executable than `helm`. */
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { chartTexts, digestName, digestOf, examples, fixturePath, refusals } from "./chart.ts"

const folder = mkdtempSync(path.join(tmpdir(), "chart-"))
const chart = path.join(folder, "model-gateway")
for (const [name, text] of chartTexts) {
  mkdirSync(path.dirname(path.join(chart, name)), { recursive: true })
  writeFileSync(path.join(chart, name), text)
}

const helm = (...args: ReadonlyArray<string>) => {
  const { error, status, stderr, stdout } = spawnSync(process.env["HELM"] ?? "helm", args, { encoding: "utf8" })
  if (error !== undefined) throw error
  return { status, stderr, stdout }
}

const render = (values: string) => helm("template", "gateway", chart, "--namespace", "models", "--values", values)

const rendered = new Map<string, string>()
try {
  for (const name of examples) {
    const values = path.join(chart, "examples", `${name}.yaml`)
    const linted = helm("lint", "--strict", chart, "--values", values)
    if (linted.status !== 0) throw new Error(linted.stdout + linted.stderr)
    const { status, stderr, stdout } = render(values)
    if (status !== 0) throw new Error(stderr)
    rendered.set(`${name}.yaml`, stdout)
  }
  const messages = Object.entries(refusals).map(([name, { values }]) => {
    const file = path.join(folder, "values.json")
    writeFileSync(file, JSON.stringify(values))
    const { status, stderr } = render(file)
    if (status === 0) throw new Error(`the chart takes ${name}`)
    return [name, stderr.replaceAll(folder, "").trim()]
  })
  rendered.set("refused.json", JSON.stringify(Object.fromEntries(messages), undefined, 2) + "\n")
  for (const [name, text] of rendered) writeFileSync(fixturePath(name), text)
  writeFileSync(fixturePath(digestName), `${digestOf(rendered)}\n`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

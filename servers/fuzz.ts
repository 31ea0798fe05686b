/**
 * `npm run fuzz:api [-- callers | admin] [--seconds N]`: schemathesis sends what the gateway's OpenAPI document allows and what it forbids, with fixed
 * input, for a time. It installs schemathesis into the cache of `npm run test:servers`.
 *
 * A finding is a status of 5xx, a reply that the document does not describe, an accepted request that it forbids or that has no credential, or
 * a sequence of requests that breaks a rule. A refused request that the document allows
 * is no finding: the document cannot say every rule. Before that, `manyValues.ts` sends bodies of many small values.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import path from "node:path"
import { adminKey, businessKey, startGateway } from "../test/support/gateway.ts"
import { install } from "./install.ts"
import { tryManyValues } from "./manyValues.ts"

/** A part of the document: its paths, and the credential of its requests. */
interface Target {
  readonly paths: string
  readonly without: string
  readonly key: string
}

const targets: Readonly<Record<string, Target>> = {
  callers: { paths: "^/(v1|v1beta|msgcompat|messages|healthz|readyz)", without: "^$", key: businessKey },
  // A capture asks the upstream, which other requests of the run disable: a 503 is right then.
  admin: { paths: "^/admin", without: "^/admin/dev/raw-samples/capture$", key: adminKey }
}

const words = process.argv.slice(2)
const at = words.indexOf("--seconds")
const seconds = at === -1 ? "240" : words[at + 1] ?? ""
if (!/^\d+$/.test(seconds)) throw new Error("--seconds takes a number")
const named = words.filter((_, i) => at === -1 || (i !== at && i !== at + 1))
const unknown = named.find((name) => !Object.hasOwn(targets, name))
if (unknown !== undefined) {
  throw new Error(`There is no target ${unknown}. The targets are ${Object.keys(targets).join(", ")}.`)
}

const folder = await install("schemathesis")
for (const [name, { key, paths, without }] of Object.entries(targets)) {
  if (named.length > 0 && !named.includes(name)) continue
  process.stdout.write(`\n## ${name}\n\n`)
  const gateway = await startGateway({ auth: { direct_tokens: false }, embeddings: { provider: "builtin" } })
  try {
    const findings = await tryManyValues(gateway.url, key, new RegExp(paths))
    for (const finding of findings) process.stdout.write(`many values: ${finding}\n`)
    if (findings.length > 0) process.exitCode = 1
    const child = spawn(path.join(folder, "bin/st"), [
      "run",
      `${gateway.url}/openapi.json`,
      "--header",
      `Authorization: Bearer ${key}`,
      "--include-path-regex",
      paths,
      "--exclude-path-regex",
      without,
      "--exclude-checks",
      "positive_data_acceptance",
      "--max-time",
      seconds,
      "--max-examples",
      "20",
      "--generation-deterministic",
      "--continue-on-failure",
      "--no-color"
    ], { stdio: ["ignore", "inherit", "inherit"] })
    const [code] = await once(child, "exit")
    if (code !== 0) process.exitCode = 1
  } finally {
    await gateway.stop()
  }
}

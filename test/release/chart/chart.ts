/**
 * What Helm makes of the chart: its rendering of each file of example values, and its message for values that it refuses. Helm is neither
 * in npm nor in Debian, so `npm run chart` keeps what it says in `test/fixtures/chart`, with a digest of the chart.
 */
import { createHash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { stampTexts } from "../../../scripts/release/packaging.ts"

const chartFolder = "helm/model-gateway/"

/** The texts of the chart by their paths in it, stamped with the same facts each time. */
export const chartTexts: ReadonlyMap<string, string> = new Map(
  [...stampTexts({
    VERSION: "1.2.3",
    URL: "https://files.test/gateway.tgz",
    SHA256: "0".repeat(64),
    IMAGE: "registry.test/gateway"
  })]
    .filter(([name]) => name.startsWith(chartFolder))
    .map(([name, text]) => [name.slice(chartFolder.length), text])
)

/** The names of the example values. */
export const examples: ReadonlyArray<string> = [...chartTexts.keys()]
  .flatMap((name) => /^examples\/(.+)\.yaml$/.exec(name)?.[1] ?? [])

const usable = { adminKey: "k" }

/** Values that the chart refuses, and what the message has. */
export const refusals: Readonly<Record<string, { readonly values: object; readonly message: string }>> = {
  "no admin key": { values: {}, message: "set adminKey, or existingSecret" },
  "replicas without a store": { values: { ...usable, replicas: 3 }, message: "several replicas need store.url" },
  "two addresses of the store": {
    values: { ...usable, store: { url: "redis://a", existingSecret: "b" } },
    message: "the store has one address"
  },
  "a store of another protocol": { values: { ...usable, store: { url: "http://store" } }, message: "/store/url" },
  "an ingress without hosts": { values: { ...usable, ingress: { enabled: true } }, message: "ingress.hosts" },
  "an unknown value": { values: { ...usable, replica: 2 }, message: "'replica'" }
}

const fixtures = path.join(import.meta.dirname, "../../fixtures/chart")

/** The path of a kept text. */
export const fixturePath = (name: string): string => path.join(fixtures, name)

/** The kept texts by name, without the digest. */
export const readFixtures = (): ReadonlyMap<string, string> =>
  new Map(
    readdirSync(fixtures).filter((name) => name !== digestName).sort()
      .map((name) => [name, readFileSync(fixturePath(name), "utf8")])
  )

export const digestName = "sha256.txt"

/** The digest of the chart, of the refused values, and of what Helm says about them. */
export const digestOf = (rendered: ReadonlyMap<string, string>): string =>
  createHash("sha256").update(JSON.stringify([[...chartTexts], refusals, [...rendered].sort()])).digest("hex")

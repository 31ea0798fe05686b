// The bill of materials as CycloneDX JSON: every package whose code is in the service, and the Node of the executables. It follows from
// the bundled modules, because `npm sbom` lists installed packages instead.
import { createHash } from "node:crypto"
import type { Package } from "../bundle/packages.ts"
import { commitName, type Facts, isoTime, locked, manifest } from "./facts.ts"

/** A package URL: `pkg:npm/%40scope/name@1.2.3`. */
const purlOf = (name: string, version: string): string => `pkg:npm/${name.replace("@", "%40")}@${version}`

const licenseOf = (license: string) =>
  /^[\w.+-]+$/.test(license) ? { license: { id: license } } : { expression: license }

const component = ({ license, name, version }: Package) => {
  const purl = purlOf(name, version)
  const [algorithm, digest] = locked[`node_modules/${name}`]?.integrity.split("-") ?? []
  return {
    type: "library",
    "bom-ref": purl,
    ...(name.startsWith("@") ? { group: name.split("/")[0], name: name.split("/")[1] } : { name }),
    version,
    scope: "required",
    ...(algorithm === "sha512" && digest !== undefined
      ? { hashes: [{ alg: "SHA-512", content: Buffer.from(digest, "base64").toString("hex") }] }
      : {}),
    licenses: [licenseOf(license)],
    purl
  }
}

/** A UUID that follows from a text. */
const uuidOf = (text: string): string => {
  const hex = createHash("sha256").update(text).digest("hex")
  return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    "-"
  )
}

/** The document; `node` is the version of Node. */
export const makeSbom = (packages: ReadonlyArray<Package>, nodeVersion: string, facts: Facts): string => {
  const own = purlOf(manifest.name, facts.version)
  const node = `pkg:generic/node@${nodeVersion}`
  const components = [
    ...packages.map(component),
    {
      type: "platform",
      "bom-ref": node,
      name: "node",
      version: nodeVersion,
      scope: "required",
      licenses: [{ license: { id: "MIT" } }],
      purl: node
    }
  ]
  const document = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify([facts, components]))}`,
    version: 1,
    metadata: {
      timestamp: isoTime(facts),
      component: {
        type: "application",
        "bom-ref": own,
        name: manifest.name,
        version: facts.version,
        description: manifest.description,
        licenses: [{ license: { id: manifest.license } }],
        purl: own,
        properties: [{ name: "commit", value: commitName(facts) }]
      }
    },
    components,
    dependencies: [
      { ref: own, dependsOn: components.map((each) => each["bom-ref"]) },
      ...components.map((each) => ({ ref: each["bom-ref"] }))
    ]
  }
  return `${JSON.stringify(document, undefined, 2)}\n`
}

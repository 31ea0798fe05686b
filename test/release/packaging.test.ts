/**
 * The files for containers, services and charts match the gateway's commands and variables.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { readFileSync } from "node:fs"
import path from "node:path"
import { gunzipSync } from "node:zlib"
import * as YAML from "yaml"
import { noticesOf, type Package } from "../../scripts/bundle/packages.ts"
import { runConfig } from "../../scripts/release/image.ts"
import { fileIn } from "../../scripts/release/nodes.ts"
import { chartArchive, readTexts, stamp, stampTexts } from "../../scripts/release/packaging.ts"
import { makeSbom } from "../../scripts/release/sbom.ts"
import { Timeouts } from "../../src/config/schema.ts"
import { sharedNotice } from "../../src/server/nodeServer.ts"
import { pages, pageText, snippetsOf } from "../support/snippets.ts"

const root = path.join(import.meta.dirname, "../..")
const texts = stampTexts({
  VERSION: "1.2.3",
  URL: "https://files.test/model-gateway-1.2.3.tgz",
  SHA256: "0".repeat(64),
  IMAGE: "registry.test/model-gateway"
})
const text = (name: string): string => texts.get(name) ?? assert.fail(`no ${name}`)
const chart = (name: string): string => text(`helm/model-gateway/${name}`)

describe("the packaging texts", () => {
  it("are all there, and have what a release knows", () => {
    assert.includeMembers([...texts.keys()], [
      "Dockerfile",
      "compose.yaml",
      "model-gateway.service",
      "model-gateway.socket",
      "model-gateway.rb",
      "prometheus/alerts.yaml",
      "grafana/model-gateway.json",
      "helm/model-gateway/Chart.yaml"
    ])
    for (const [name, content] of texts) assert.notMatch(content, /@[A-Z]+@/, name)
    assert.include(text("model-gateway.rb"), `sha256 "${"0".repeat(64)}"`)
    assert.include(text("compose.yaml"), "registry.test/model-gateway:1.2.3")
    assert.throws(() => stamp("@NOTHING@", { VERSION: "", URL: "", SHA256: "", IMAGE: "" }), /@NOTHING@/)
  })

  it("name only variables that the gateway reads", () => {
    const environment = readFileSync(path.join(root, "src/config/Environment.ts"), "utf8")
    for (const [name, content] of [...texts, ["image", JSON.stringify(runConfig)] as const]) {
      for (const [variable] of content.matchAll(/\bGATEWAY_[A-Z_]+\b/g)) {
        assert.include(environment, `"${variable}"`, `${name}: ${variable}`)
      }
    }
  })

  it("agree with the gateway and with each other on port, user, paths and times", () => {
    const seconds = Schema.decodeUnknownSync(Timeouts)({}).drain + sharedNotice
    const grace = { "compose.yaml": /stop_grace_period: (\d+)s/, "model-gateway.service": /TimeoutStopSec=(\d+)/ }
    for (const [name, pattern] of Object.entries(grace)) {
      assert.isAbove(Number(pattern.exec(text(name))?.[1]), seconds, name)
    }
    const deployment = chart("templates/deployment.yaml")
    for (const file of [text("Dockerfile"), deployment]) {
      assert.include(file, "65532")
      assert.include(file, "5001")
      assert.include(file, "/data")
    }
    for (const variable of runConfig.Env) assert.include(text("Dockerfile"), variable)
    assert.include(text("Dockerfile"), "STOPSIGNAL SIGTERM")
    assert.include(text("model-gateway.socket"), "ListenStream=127.0.0.1:5001")
    assert.match(text("model-gateway.service"), /^ExecStartPost=\S+ health --wait 20$/m)
    assert.include(deployment, "path: /readyz")
    assert.include(deployment, "path: /healthz")
  })

  it("parse as YAML and units, with what a service needs", () => {
    const compose = YAML.parse(text("compose.yaml"))
    assert.sameMembers(Object.keys(compose.services), ["gateway", "store"])
    for (const service of Object.values<Record<string, unknown>>(compose.services)) {
      assert.containsAllKeys(service, ["healthcheck", "read_only", "cap_drop"])
    }
    assert.include(compose.services.store.command, "noeviction")
    assert.match(compose.services.gateway.environment.GATEWAY_ADMIN_KEY, /^\$\{GATEWAY_ADMIN_KEY:\?/)
    assert.deepEqual(compose.volumes, { data: { name: "model-gateway-data" }, store: { name: "model-gateway-store" } })
    assert.deepInclude(YAML.parse(chart("Chart.yaml")), { version: "1.2.3", appVersion: "1.2.3" })
    const values = YAML.parse(chart("values.yaml"))
    const schema = JSON.parse(chart("values.schema.json"))
    assert.hasAllKeys(values, Object.keys(schema.properties).filter((name) => name !== "global"))
    for (const file of ["model-gateway.service", "model-gateway.socket"]) {
      for (const line of text(file).split("\n")) assert.match(line, /^(?:|#.*|\[\w+\]|\w+=.*)$/, file)
    }
  })

  it("have one systemd unit, which the documents show, with a reload that replaces workers", () => {
    const unit = text("model-gateway.service")
    assert.deepEqual(snippetsOf(pageText("docs/operate/systemd.md"), "ini").map((snippet) => snippet.text), [unit])
    assert.match(unit, /^ExecReload=\/bin\/kill -HUP \$MAINPID$/m)
    const [, variables = ""] = /^EnvironmentFile=-(.+)$/m.exec(unit) ?? []
    const shown = pages().map(pageText).join("\n")
    assert.include(shown, variables)
    // No other unit, and no other file of variables.
    assert.lengthOf(shown.match(/^EnvironmentFile=/gm) ?? [], 1)
    assert.deepEqual(
      [...new Set(shown.match(/\/etc\/model-gateway[\w./-]*\w/g))].filter((file) => file !== variables),
      []
    )
  })

  it("have a chart that uses only values that there are, and all of them", () => {
    const values: Readonly<Record<string, unknown>> = YAML.parse(chart("values.yaml"))
    const used = new Set<string>()
    for (const [name, content] of texts) {
      if (!name.includes("/templates/")) continue
      for (const [, at = ""] of content.matchAll(/\.Values\.([\w.]+)/g)) {
        let value: unknown = values
        for (const key of at.split(".")) value = (value as Record<string, unknown> | undefined)?.[key]
        assert.isDefined(value, `${name}: ${at}`)
        used.add(at)
      }
      const opened = [...content.matchAll(/\{\{-? (?:if|with|range|define)\b/g)].length
      assert.strictEqual([...content.matchAll(/\{\{-? end\b/g)].length, opened, name)
    }
    const groups = Object.entries(
      JSON.parse(chart("values.schema.json")).properties as Record<string, {
        readonly properties?: object
      }>
    )
    for (const [name, { properties = {} }] of groups) {
      const fields = Object.keys(properties).map((field) => `${name}.${field}`)
      for (const at of fields.length > 0 ? fields : [name]) assert.isTrue(used.has(at) || at === "global", at)
    }
  })

  it("come as an archive that helm takes", async () => {
    const archive = gunzipSync(await chartArchive(texts, 0))
    assert.strictEqual(String(fileIn(archive, "model-gateway/Chart.yaml")), chart("Chart.yaml"))
    assert.isDefined(fileIn(archive, "model-gateway/templates/deployment.yaml"))
  })

  it("say nothing that only a release knows where they stand in the repository", () => {
    const own = [...readTexts().values()].join("\n")
    assert.include(own, "@VERSION@")
    assert.notInclude(own, "registry.test")
  })
})

describe("the bill of materials", () => {
  const packages: ReadonlyArray<Package> = [
    { name: "@effect/platform-node", version: "4.1.0", license: "MIT", text: "terms of one" },
    { name: "undici", version: "8.0.0", license: "(MIT OR Apache-2.0)", text: "terms of two" }
  ]
  const facts = { version: "1.2.3", revision: "0123456789abcdef0123456789abcdef01234567", dirty: true, time: 0 }

  it("has each package and Node, with version, address and license, and says the same each time", () => {
    const made = makeSbom(packages, "26.0.0", facts)
    assert.strictEqual(made, makeSbom(packages, "26.0.0", facts))
    const { bomFormat, components, metadata, serialNumber } = JSON.parse(made)
    assert.deepEqual([bomFormat, metadata.component.version], ["CycloneDX", "1.2.3"])
    assert.match(serialNumber, /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.deepEqual(
      components.map(({ licenses, purl, version }: Record<string, unknown>) => [purl, version, licenses]),
      [
        ["pkg:npm/%40effect/platform-node@4.1.0", "4.1.0", [{ license: { id: "MIT" } }]],
        ["pkg:npm/undici@8.0.0", "8.0.0", [{ expression: "(MIT OR Apache-2.0)" }]],
        ["pkg:generic/node@26.0.0", "26.0.0", [{ license: { id: "MIT" } }]]
      ]
    )
  })

  it("goes with the terms of the same packages", () => {
    const notices = noticesOf(packages)
    for (const { license, name, text, version } of packages) {
      assert.include(notices, `${name} ${version} (${license})\n\n${text}`)
    }
  })
})

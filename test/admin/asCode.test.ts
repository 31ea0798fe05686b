/** The page about configuration as code: each request that its resources make. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { pageText, snippetsOf } from "../support/snippets.ts"
import { caller } from "./support.ts"

let gateway: RunningGateway
const call = caller(() => gateway)
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

interface Resource {
  readonly name: string
  readonly fields: ReadonlyMap<string, unknown>
}

/** An object of the language as JSON: names and values have `=` between them. */
const valueOf = (text: string): unknown =>
  JSON.parse(text.replace(/^jsonencode\((.*)\)$/, "$1").replace(/([{,]\s*)(\w+) = /g, "$1\"$2\": "))

const resourcesOf = (text: string): ReadonlyArray<Resource> =>
  [...text.matchAll(/^resource "restapi_object" "(\w+)" \{\n(.*?)^\}/gms)].map(([, name = "", body = ""]) => ({
    name,
    fields: new Map(
      [...body.matchAll(/^ {2}(\w+) *= (.*)$/gm)].map(([, field = "", value = ""]) => [field, valueOf(value)])
    )
  }))

type Item = Readonly<Record<string, unknown>>

describe("the resources of the page about configuration as code", () => {
  it("are made, found again, changed without another difference, and removed by the admin API", async () => {
    const [snippet] = snippetsOf(pageText("docs/operate/as-code.md"), "hcl")
    const resources = resourcesOf(snippet!.text)
    assert.deepEqual(resources.map(({ name }) => name), ["team_a", "gpu", "routes"])
    const removed: Array<string> = []
    for (const { fields, name } of resources) {
      const text = (field: string, absent = "") => String(fields.get(field) ?? absent)
      const path = text("path")
      const made = await call(text("create_method", "POST"), text("create_path", path), { body: fields.get("data") })
      assert.strictEqual(made.status, 200, `${name}: ${made.text}`)
      const id = fields.has("object_id") ? text("object_id") : String(made.json[text("id_attribute", "id")])
      const read = await call("GET", text("read_path", path).replace("{id}", id))
      const search = fields.get("read_search") as
        | { readonly search_key: string; readonly results_key: string }
        | undefined
      if (search !== undefined) {
        const found = read.json[search.results_key] as ReadonlyArray<Item>
        assert.lengthOf(found.filter((item) => item[search.search_key] === id), 1, name)
      }
      if (fields.has("update_data")) {
        const changed = await call(text("update_method"), `${path}/${id}`, { body: fields.get("update_data") })
        assert.strictEqual(changed.status, 200, `${name}: ${changed.text}`)
        removed.unshift(`${path}/${id}`)
      } else {
        assert.deepNestedInclude(read.json, { "routes.fast.targets": ["gpu/small"] })
        assert.strictEqual((await call("PUT", path, { body: { routes: {} } })).status, 200)
      }
    }
    for (const path of removed) assert.strictEqual((await call("DELETE", path)).status, 200, path)
  })
})

/**
 * Every field of the vendors' tables that the gateway does not read, through the running gateway, whole and streamed: what the table says
 * of it is what becomes of it.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { ignorableFields, isRequired } from "../../src/contracts/shared/chatFields.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"
import { plainRequests } from "../support/plainRequests.ts"
import { type StyleName, styleNames } from "../support/styleClients.ts"
import { families, nested, unread, type UnreadField } from "../support/unreadFields.ts"

let server: OpenAiServer
const gateways = new Map<string, RunningGateway>()

beforeAll(async () => {
  server = await startOpenAiServer()
  server.answer(() => streamed({ content: "Hello" }))
  gateways.set("openai", await startGateway({ upstream: { driver: "openai", base_url: server.baseUrl } }))
  gateways.set("embedded", await startGateway({ upstream: { driver: "embedded" } }))
})
afterAll(async () => {
  for (const gateway of gateways.values()) await gateway.stop()
  await server.stop()
})

/** Other fields that have no effect either. */
const alsoIgnored: { readonly [path: string]: ReadonlyArray<string> } = {
  "thinking.block_binding": ["thinking"],
  // It asks for what `include` asks for.
  top_logprobs: ["include"]
}

const ask = async (style: StyleName, gateway: string, stream: boolean, field: UnreadField) => {
  const { body, path } = plainRequests[style]
  const response = await fetch(gateways.get(gateway)!.url + path(stream), {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify({ ...body(stream), ...nested(field) })
  })
  const text = await response.text()
  return { status: response.status, text, ignored: response.headers.get("x-gateway-ignored")?.split(",") ?? [] }
}

for (const style of styleNames) {
  const family = families[style]
  describe.each(["embedded", "openai"])(`a field of the ${style} style in front of the driver %s`, (gateway) => {
    const fields = unread(family.fields)

    it.each(fields.map((field) => [field.keys.join("."), field] as const))("%s", async (path, field) => {
      const { keys, row, value } = field
      const top = keys.at(-1)!
      const isOwn = gateway === "openai" && family.vendor === "openai" && row.local !== true
      const isSent = gateway === "openai" && row.fate === "passed"
      const serverName = row.as ?? top
      for (const stream of [false, true]) {
        const { ignored, status, text } = await ask(style, gateway, stream, field)
        const sent = server.requests.at(-1)?.body ?? {}
        const isRefused = row.fate === "refused" ||
          (!isSent && !isOwn && (row.required === true || isRequired(serverName)))
        assert.strictEqual(status, isRefused ? 400 : 200, text)
        if (isRefused) {
          assert.include(text, path)
          continue
        }
        if (isSent) assert.deepStrictEqual(sent[serverName], value)
        else if (isOwn) assert.deepInclude(sent, nested(field))
        const isNamed = row.fate === "reported"
          ? !isOwn
          : row.fate === "passed" && !isSent && !ignorableFields.has(serverName)
        const others = alsoIgnored[path] ?? []
        assert.deepStrictEqual(ignored.filter((named) => !others.includes(named)), isNamed ? [path] : [])
      }
    })
  })
}

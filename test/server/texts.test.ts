/**
 * What the gateway says of itself agrees with what it is: introductions, figures in the documents, words of the console.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as OpenApi from "effect/http-api/OpenApi"
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { parseSync, Visitor } from "rolldown/utils"
import { backOff } from "../../src/accounts/backOff.ts"
import { settingsFields } from "../../src/admin/settings/fields.ts"
import { decodeConfig } from "../../src/config/decodeConfig.ts"
import { Embeddings } from "../../src/config/schema.ts"
import { rules } from "../../src/domain/failureRules.ts"
import { faultOf } from "../../src/domain/fault.ts"
import { errorTable } from "../../src/domain/GatewayError.ts"
import { GatewayApi } from "../../src/server/Api.ts"
import { gateway } from "../../src/server/cli/commands.ts"
import { adviceTexts, causeNames } from "../../src/web/texts/advice.ts"
import { later as en } from "../../src/web/texts/later.ts"
import { zh } from "../../src/web/texts/zh.ts"
import { pageText } from "../support/snippets.ts"

const file = (name: string) => readFileSync(path.join(import.meta.dirname, "../..", name), "utf8")

/** Which argument of the functions that make errors for callers is the message. */
const messagePlaces = new Map([
  ["invalidRequest", 0],
  ["upgradeRequired", 0],
  ["gatewayError", 1],
  ["fault", 1],
  ["at", 1],
  ["atElsewhere", 1]
])

describe("the texts", () => {
  it("introduce a gateway of any number of upstreams", () => {
    const introductions = {
      "the API's document": OpenApi.fromApi(GatewayApi).info.description ?? "",
      "the command line": gateway.description ?? "",
      "package.json": String(JSON.parse(file("package.json")).description),
      "the formula": /^ *desc "(.*)"$/m.exec(file("packaging/model-gateway.rb"))?.[1] ?? "",
      "the chart": /^description: (.*)$/m.exec(file("packaging/helm/model-gateway/Chart.yaml"))?.[1] ?? ""
    }
    for (const [place, text] of Object.entries(introductions)) {
      assert.match(text, /language model/, place)
      assert.notMatch(text, /one upstream/i, place)
    }
  })

  it("state how long accounts stay out of rotation", () => {
    const words = (milliseconds: number) =>
      milliseconds >= 3_600_000
        ? `${milliseconds / 3_600_000} hour`
        : milliseconds >= 60_000
        ? `${milliseconds / 60_000} minute`
        : `${milliseconds / 1_000} s`
    const page = pageText("docs/guides/account-pool.md").replaceAll(/\s+/g, " ")
    for (const fault of ["rate_limited", "refused_login"] as const) {
      const { first, longest } = backOff[fault]
      assert.include(page, `${words(first)}, doubling up to ${words(longest)}`, fault)
    }
  })

  it("name each driver that makes embeddings", () => {
    const { description = "" } = Embeddings.fields.provider.ast.annotations ?? {}
    for (const driver of ["openai", "responses", "generate"]) assert.include(String(description), `\`${driver}\``)
  })

  it("of errors for callers name no setting of the operator", async () => {
    const names = settingsFields(
      {},
      (await Effect.runPromise(decodeConfig({}, { duplicates: "refuse" }))).snapshot.config
    )
      .map((field) => field.path).filter((name) => name.includes("."))
    assert.isAbove(names.length, 50)
    let seen = 0
    for (const folder of ["accounts", "completion", "domain", "http", "styles", "usage"]) {
      const root = path.join(import.meta.dirname, "../../src", folder)
      for (const module of readdirSync(root, { recursive: true, encoding: "utf8" })) {
        if (!module.endsWith(".ts")) continue
        const text = readFileSync(path.join(root, module), "utf8")
        const messages: Array<{ readonly start: number; readonly end: number }> = []
        const literals: Array<{ readonly start: number; readonly said: string }> = []
        new Visitor({
          CallExpression: ({ arguments: given, callee }) => {
            const name = callee.type === "Identifier"
              ? callee.name
              : callee.type === "MemberExpression" && "name" in callee.property
              ? callee.property.name
              : ""
            const message = given[messagePlaces.get(String(name)) ?? -1]
            if (message !== undefined) messages.push(message)
          },
          Literal: ({ start, value }) => {
            if (typeof value === "string") literals.push({ start, said: value })
          },
          TemplateElement: ({ start, value }) => {
            literals.push({ start, said: value.raw })
          }
        }).visit(parseSync(module, text).program)
        seen += messages.length
        for (const { said, start } of literals) {
          if (!messages.some((message) => message.start <= start && start < message.end)) continue
          for (const name of names) assert.notInclude(said, name, module)
        }
      }
    }
    assert.isAbove(seen, 50)
  })

  it("advise on each error and each kind of upstream failure, in both languages", () => {
    const names = [...Object.keys(errorTable), ...rules.map((rule) => rule.class)]
    for (const name of names) {
      const shown = [name, faultOf({ error: name, cause: name })]
      for (const { inspector } of [en, zh]) assert.isTrue(shown.some((one) => inspector.advice(one ?? "")), name)
    }
    for (const name of Object.keys(adviceTexts)) assert.isDefined(zh.inspector.advice(name), name)
    for (const name of Object.keys(causeNames)) assert.notStrictEqual(zh.inspector.causes(name), name)
  })

  it("of the pager are not the word for an update", () => {
    assert.notStrictEqual(zh.requests.newer, zh.about.check)
    assert.notInclude(zh.requests.newer, "更新")
  })
})

/** What `models show` prints: the catalogue as a table, or in the form of a client. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import type { RawConfig } from "../../config/json.ts"
import { catalogueOf } from "../../domain/catalogue.ts"
import { listedPrice } from "../../domain/listedPrice.ts"
import { factNames } from "../../domain/modelFacts.ts"
import { inLine, shownJson } from "../../domain/printed.ts"
import { cataloguedRoutes, listedRoutes } from "../../domain/routeLists.ts"
import { codexModel, openAiModel } from "../../styles/models/entries.ts"
import { online } from "./online.ts"

/** The form of a client. */
export type ModelsForm = "codex" | "openrouter"

/** Facts that the table shows: words of any length would break its lines. */
const shownFacts = factNames.filter((name) => name !== "description")

/** Columns as wide as their longest text. Servers choose the names and facts. */
const table = (texts: ReadonlyArray<ReadonlyArray<string>>): string => {
  const rows = texts.map((row) => row.map(inLine))
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows.map((row) => row.map((text, column) => text.padEnd(widths[column]!)).join("  ").trimEnd()).join("\n")
}

const textOf = (value: number | string | boolean | ReadonlyArray<string>): string => {
  if (typeof value === "boolean") return value ? "yes" : "no"
  if (typeof value === "object") return value.length === 0 ? "none" : value.join(" ")
  return String(value)
}

const asTable = (config: GatewayConfig): string => {
  const catalogue = catalogueOf(config)
  return table([
    ["model", ...shownFacts],
    ...cataloguedRoutes(config.route_table).map((route) => {
      const facts = catalogue.ofRoute(route)
      return [
        route.hidden === true ? `${route.id} (hidden)` : route.id,
        ...shownFacts.map((name) => {
          const fact = facts[name]
          return fact === undefined ? "-" : `${textOf(fact.value)} (${fact.source})`
        })
      ]
    })
  ])
}

const inForm = (config: GatewayConfig, form: ModelsForm, now: number): string | undefined => {
  const catalogue = catalogueOf(config)
  const listed = listedRoutes(config.route_table)
  const { codex_instructions: instructions = "" } = config.clients
  if (form === "codex" && instructions === "") return undefined
  return shownJson(
    form === "codex"
      ? { models: listed.map((route, place) => codexModel(route, catalogue.factsOf(route), place, instructions)) }
      : {
        data: listed.map((route) =>
          openAiModel(route.id, catalogue.factsOf(route), listedPrice(config.prices, now, route))
        )
      },
    2
  )
}

/** The text to print, `undefined` for codex without instructions, and what the servers' lists show. */
export const shownModels = (raw: RawConfig, form: ModelsForm | undefined) =>
  Effect.map(Effect.zip(online(raw), Clock.currentTimeMillis), ([{ config, findings }, now]) => {
    const text = form === undefined ? asTable(config) : inForm(config, form, now)
    return { findings, text: text === undefined ? undefined : `${text}\n` }
  })

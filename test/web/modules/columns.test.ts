/**
 * Each column of the console's tables is explained in the documents, in the section to which the page's *Help* leads, or among the
 * columns that many tables have.
 */
import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { parseSync, Visitor } from "rolldown/utils"
import { en } from "../../../src/web/texts/en.ts"
import { later } from "../../../src/web/texts/later.ts"

const root = path.join(import.meta.dirname, "../../..")

/** Where the columns of a module's tables are explained, by its path below `src/web`. */
const sectionOf = (module: string): string => {
  const [folder = "", name = ""] = module.split("/")
  if (folder === "playground") return en.common.pages.playground
  const page = name.replace(/\.tsx$/, "").toLowerCase()
  if (page === "sessionpage") return en.common.pages.sessions
  // Pages of one key, model, account or upstream, and the columns of what they were used for.
  if (page === "nouns") return en.common.pages.keys
  return en.common.pages[page as keyof typeof en.common.pages]
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
}

/** The parts of `t.groups.app`; computed parts have no name. */
const chainOf = (node: Node & Record<string, unknown>): ReadonlyArray<string | undefined> | undefined => {
  if (node.type === "Identifier") return [String(node["name"])]
  if (node.type !== "MemberExpression") return undefined
  const before = chainOf(node["object"] as Node & Record<string, unknown>)
  const property = node["property"] as { readonly name?: string }
  return before === undefined ? undefined : [...before, node["computed"] === true ? undefined : property.name]
}

/** The texts below a place; a name that is computed stands for each of the texts. */
const textsAt = (value: unknown, names: ReadonlyArray<string | undefined>): ReadonlyArray<string> => {
  const [name, ...rest] = names
  if (names.length === 0) return typeof value === "string" ? [value] : []
  if (typeof value !== "object" || value === null) return []
  const next = value as Readonly<Record<string, unknown>>
  return name === undefined ? Object.values(next).flatMap((each) => textsAt(each, rest)) : textsAt(next[name], rest)
}

interface Found {
  /** How many tables the module draws. */
  readonly tables: number
  /** For each column, the texts that its name may stand for in the sections of texts that the module uses. */
  readonly headings: ReadonlyArray<ReadonlyArray<ReadonlyArray<string>>>
}

/** The headings of a module's columns: texts in the attribute `columns`, and names of objects with what only columns have. */
const headingsOf = (text: string): Found => {
  const sections = Object.entries({ ...en, ...later }).filter(([name]) => new RegExp(`\\b${name}\\b`).test(text)).map((
    [, texts]
  ) => texts)
  const within: Array<Node> = []
  const hidden: Array<Node> = []
  const found: Array<{ readonly start: number; readonly texts: ReadonlyArray<ReadonlyArray<string>> }> = []
  let tables = 0
  new Visitor({
    JSXOpeningElement: ({ attributes, name }) => {
      if ("name" in name && /^(?:Long)?Table$/.test(String(name.name))) tables++
      for (const attribute of attributes) {
        if (attribute.type === "JSXAttribute" && attribute.name.name === "columns") within.push(attribute)
      }
    },
    ObjectExpression: (node) => {
      const keys = node.properties.flatMap((each) =>
        each.type === "Property" && "name" in each.key ? [String(each.key.name)] : []
      )
      if (!keys.includes("name")) return
      if (keys.includes("hidden") || keys.includes("content")) hidden.push(node)
      else if (keys.some((key) => ["width", "number", "rank", "sort"].includes(key))) {
        const name = node.properties.find((each) =>
          each.type === "Property" && "name" in each.key && each.key.name === "name"
        )
        if (name !== undefined) within.push(name)
      }
    },
    MemberExpression: (node) => {
      const [, ...names] = chainOf(node as never) ?? []
      if (names.length === 0) return
      found.push({ start: node.start, texts: sections.map((section) => textsAt(section, names)) })
    }
  }).visit(parseSync("page.tsx", text).program)
  const isIn = (places: ReadonlyArray<Node>, start: number) =>
    places.some((place) => place.start <= start && start < place.end)
  return {
    tables,
    headings: found.filter(({ start }) => isIn(within, start) && !isIn(hidden, start))
      .map(({ texts }) => texts.filter((each) => each.length > 0)).filter((texts) => texts.length > 0)
  }
}

/** The columns that a section of the page explains. */
const explained = (section: string): ReadonlySet<string> =>
  new Set(
    [...section.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, cell = ""]) => [cell, ...cell.split(", ")])
  )

describe("the columns of the console's tables", () => {
  const sections = new Map(
    ["console", "console-usage", "console-entries"].flatMap((page) =>
      readFileSync(path.join(root, "docs/operate", `${page}.md`), "utf8").split(/^## /m)
        .map((section) => [section.split("\n", 1)[0] ?? "", explained(section)] as const)
    )
  )
  const modules = ["pages", "playground"].flatMap((folder) =>
    readdirSync(path.join(root, "src/web", folder), { recursive: true, encoding: "utf8" })
      .map((name) => `${folder}/${name.replaceAll(path.sep, "/")}`)
  ).filter((name) => name.endsWith(".tsx"))
  const tables = modules.flatMap((module) => {
    const found = headingsOf(readFileSync(path.join(root, "src/web", module), "utf8"))
    return found.headings.length === 0 && found.tables === 0 ? [] : [{ module, ...found }]
  })

  it("are found in each page with a table", () => {
    assert.isAbove(tables.length, 20)
    assert.isAbove(new Set(tables.flatMap(({ headings }) => headings.flat(2))).size, 60)
  })

  it.each(tables)("are explained: $module", ({ headings, module }) => {
    const own = sections.get(sectionOf(module))
    const common = sections.get("Columns of many tables")
    assert.isDefined(own, sectionOf(module))
    const isExplained = (name: string) => own?.has(name) === true || common?.has(name) === true
    assert.deepStrictEqual(headings.filter((texts) => !texts.some((each) => each.every(isExplained))).flat(2), [])
  })
})

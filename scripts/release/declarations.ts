// Makes type declarations, and normalizes them: the compiler writes union members in an order that differs between runs.
import path from "node:path"
import { parseSync, Visitor } from "rolldown/utils"
import { effectCompiler, inModules } from "../compiler.ts"

/** Where the declarations are made. What the compiler knows of them is there too, so that they vanish together. */
export const declarationsFolder = inModules(".cache/declarations")

/**
 * Makes the declarations, of changed files alone; run in the repository's folder. It finds the errors of these sources, and what cannot be
 * declared. The checks of the types read the declarations in place of the sources.
 */
export const declarationsCommand = effectCompiler(
  "tsconfig.build.json",
  path.join(declarationsFolder, "info.tsbuildinfo"),
  "--outDir",
  declarationsFolder
)

const parsed = (file: string, text: string) => {
  const { errors, program } = parseSync(file, text)
  const problem = errors[0]
  if (problem !== undefined) throw new Error(`${file}: ${problem.message}`)
  return program
}

/** The line numbers of a declaration file where a type is `any`. */
export const anyTypes = (file: string, text: string): Array<number> => {
  const lines: Array<number> = []
  new Visitor({ TSAnyKeyword: ({ start }) => lines.push(text.slice(0, start).split("\n").length) }).visit(
    parsed(file, text)
  )
  return lines
}

/** The modules that a declaration file imports. */
export const importedModules = (file: string, text: string): Array<string> => {
  const names: Array<string> = []
  new Visitor({
    ImportDeclaration: ({ source }) => names.push(source.value),
    ExportNamedDeclaration: ({ source }) => source !== null && names.push(source.value),
    ExportAllDeclaration: ({ source }) => names.push(source.value),
    TSImportType: ({ source }) => names.push(source.value)
  }).visit(parsed(file, text))
  return names
}

interface Span {
  readonly start: number
  readonly end: number
}

interface Union extends Span {
  readonly types: ReadonlyArray<Span>
}

/** Sorts the members of every union. Throws if the text cannot be parsed. */
export const sortUnions = (file: string, text: string): string => {
  const unions: Array<Union> = []
  new Visitor({ TSUnionType: (node) => unions.push(node) }).visit(parsed(file, text))
  unions.sort((a, b) => a.start - b.start || b.end - a.end)
  const sorted = ({ end, start }: Span, within: ReadonlyArray<Union>): string => {
    let written = ""
    let at = start
    for (const union of within) {
      // A nested union is sorted with the outer one.
      if (union.start < at) continue
      const inside = within.filter((other) => other !== union && other.start >= union.start && other.end <= union.end)
      const members = union.types.map((member) => sorted(member, inside.filter((other) => isIn(other, member))))
      written += text.slice(at, union.start) + members.sort().join(" | ")
      at = union.end
    }
    return written + text.slice(at, end)
  }
  return sorted({ start: 0, end: text.length }, unions)
}

const isIn = (inner: Span, outer: Span): boolean => inner.start >= outer.start && inner.end <= outer.end

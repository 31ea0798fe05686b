/**
 * The replies of a golden file as a client reads their bytes: the other direction of `lines.ts`.
 */
import { readGolden } from "./files.ts"

/** A reply of a golden file. */
export interface GoldenReply {
  /** The name of the exchange, such as `text, streamed`. */
  readonly name: string
  readonly status: number
  readonly contentType: string | undefined
  readonly bytes: Uint8Array
}

const bytesOf = (line: string): string => {
  const [, mark = "", value = ""] = /^(\w+): (.*)$/.exec(line) ?? []
  switch (mark) {
    case "data":
      return `${line}\n\n`
    case "event":
      return `event: ${(JSON.parse(value) as { readonly type: string }).type}\ndata: ${value}\n\n`
    case "frame":
      return `${JSON.parse(value) as string}\n\n`
    case "body":
      return value
    default:
      return JSON.parse(value) as string
  }
}

/** The line with the status and headers of an exchange; one that names another exchange stands for that one's. */
const headOf = (exchanges: ReadonlyMap<string, ReadonlyArray<string>>, lines: ReadonlyArray<string>): string => {
  const line = lines.find((each) => each.startsWith("< ")) ?? ""
  const before = /^< as in: ([^;]*)/.exec(line)?.[1]
  return before === undefined ? line : headOf(exchanges, exchanges.get(before) ?? [])
}

/** The replies of a style in front of a driver, in the order of the file. Bodies that are named instead of repeated are left out. */
export const repliesIn = (style: string, driver: string): ReadonlyArray<GoldenReply> => {
  const exchanges = new Map(
    readGolden(`${style}/${driver}.txt`).trimEnd().split("\n\n").map((exchange) => {
      const [title = "", ...lines] = exchange.split("\n")
      return [title.slice("# ".length), lines]
    })
  )
  return [...exchanges].flatMap(([name, lines]) => {
    const [, status = "", headers = ""] = /^< (\d{3}) (.*)$/.exec(headOf(exchanges, lines)) ?? []
    const body = lines.slice(lines.findIndex((line) => line.startsWith("< ")) + 1)
    if (status === "" || body.length === 0 || body[0]!.startsWith("body as in")) return []
    const { "content-type": contentType } = JSON.parse(headers) as { readonly "content-type"?: string }
    const bytes = new TextEncoder().encode(body.map(bytesOf).join(""))
    return [{ name, status: Number(status), contentType, bytes }]
  })
}

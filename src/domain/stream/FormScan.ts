/**
 * Passes a `multipart/form-data` body (RFC 7578) through as it arrives, and takes out the value of the field `model`.
 *
 * Every other byte stays. Where parsers differ, the body is refused, so that a server cannot see another model than the gateway: a repeated
 * `model`, folded headers, escapes in names. Memory is bounded by the longest headers of a part.
 */
import { choosesInForm, isLikeModel, likeModel } from "../choosingFields.ts"
import { HeadEnd } from "./HeadEnd.ts"
import type { Machine } from "./transducer.ts"

const CONTENT = 0
const DELIMITER = 1
const HEADERS = 2
const EPILOGUE = 3

/** Bytes of the headers of one part. */
const longestHeaders = 8 * 1024

/** Characters of a field's name in an error. */
const longestShown = 80

/** Parts of a body. */
const mostParts = 1_000

const lineEnd = Buffer.from("\r\n")
const headersEnd = Buffer.from("\r\n\r\n")

/** Stands for the place of the model's name. */
export const modelPlace: unique symbol = Symbol("model-gateway/domain/modelPlace")

/** Bytes of the body, or the place of the model's name. */
export type FormPiece = Uint8Array | typeof modelPlace

const parameter = /;\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;"]+)\s*/gy

/** The name in a `content-disposition`; `undefined` if it is missing, or parsers may read it differently. */
const nameIn = (disposition: string): string | undefined => {
  const type = /^\s*form-data\s*(?=;|$)/i.exec(disposition)
  if (type === null) return undefined
  let name: string | undefined
  parameter.lastIndex = type[0].length
  let end = type[0].length
  for (let found = parameter.exec(disposition); found !== null; found = parameter.exec(disposition)) {
    end = parameter.lastIndex
    const key = found[1]!.toLowerCase()
    if (key === "name*" || (key === "name" && name !== undefined)) return undefined
    if (key === "name") name = found[2]!.replace(/^"(.*)"$/s, "$1")
  }
  return end === disposition.length && name?.includes("\\") === false ? name : undefined
}

/** The name of a part by the text of its headers. */
const nameOf = (headers: string): string | undefined => {
  const lines = headers.split("\r\n")
  if (lines.some((line) => /^[ \t]|[\r\n\0]/.test(line))) return undefined
  const dispositions = lines.filter((line) => /^content-disposition\s*:/i.test(line))
  return dispositions.length === 1 ? nameIn(dispositions[0]!.slice(dispositions[0]!.indexOf(":") + 1)) : undefined
}

/** What a body that names the model more than once is refused with. */
export const modelTwice = "model: is there more than once"

export class FormScan implements Machine<Uint8Array, FormPiece> {
  /** The value of the field `model`, once it is complete. */
  model: string | undefined
  /** Bytes of the model's value in the body. */
  modelBytes = 0
  /** Why the body is refused; it names the field where one is at fault. */
  fault: { readonly field?: string; readonly message: string } | undefined
  /** The fields so far by which servers choose another model, or a tier. At most `mostParts`. */
  readonly choosing: Array<string> = []
  private readonly delimiter: Buffer
  private readonly longestModel: number
  private state = CONTENT
  private parts = 0
  private isModel = false
  private readonly value: Array<Uint8Array> = []
  /**
   * Bytes that are not decided yet: the beginning of a delimiter, or of headers within `longestHeaders`. The first delimiter needs no
   * line before it, so one is added, and not emitted.
   */
  private rest: Array<Uint8Array> = [lineEnd]
  private restBytes = lineEnd.length
  private unsent = lineEnd.length
  private headEnd = new HeadEnd()

  /** `longestModel` are the bytes that a model's name may have. */
  constructor(boundary: string, longestModel: number) {
    this.delimiter = Buffer.from(`\r\n--${boundary}`)
    this.longestModel = longestModel
  }

  push(chunk: Uint8Array, out: Array<FormPiece>): void {
    this.rest.push(chunk)
    this.restBytes += chunk.length
    // Headers are joined once: when they end, or are too long.
    if (this.state === HEADERS && this.headEnd.find(chunk) === -1 && this.restBytes <= longestHeaders) return
    let bytes: Buffer = Buffer.concat(this.rest)
    while (this.fault === undefined) {
      const length = this.step(bytes, out)
      if (length === 0) break
      bytes = bytes.subarray(length)
    }
    // A copy, so that a few bytes do not keep a large chunk.
    this.rest = [Buffer.from(bytes)]
    this.restBytes = bytes.length
    if (this.state !== HEADERS) return
    // The blank line may have begun in these bytes.
    this.headEnd = new HeadEnd()
    this.headEnd.find(bytes)
  }

  end(): void {
    if (this.state !== EPILOGUE) this.refuse("The form ends before its last boundary")
  }

  private refuse(message: string, field?: string): number {
    this.fault ??= field === undefined ? { message } : { field, message }
    return 0
  }

  /** Reads as far as is certain; returns the number of bytes that were read. */
  private step(bytes: Buffer, out: Array<FormPiece>): number {
    switch (this.state) {
      case CONTENT: {
        const at = bytes.indexOf(this.delimiter)
        if (at === -1) return this.content(bytes, Math.max(0, bytes.length - this.delimiter.length + 1), out)
        this.content(bytes, at, out)
        if (this.isModel) this.endModel(out)
        this.emit(bytes.subarray(at, at + this.delimiter.length), out)
        this.state = DELIMITER
        return at + this.delimiter.length
      }
      case DELIMITER: {
        if (bytes.length < 2) return 0
        const next = bytes.toString("latin1", 0, 2)
        if (next !== "--" && next !== "\r\n") return this.refuse("A boundary of the form is not followed by a line end")
        this.emit(bytes.subarray(0, next === "--" ? 2 : 0), out)
        this.state = next === "--" ? EPILOGUE : HEADERS
        // The line end may be the beginning of an empty line.
        return next === "--" ? 2 : this.headers(bytes, out)
      }
      case HEADERS:
        return this.headers(bytes, out)
      default:
        this.emit(bytes, out)
        return bytes.length
    }
  }

  private headers(bytes: Buffer, out: Array<FormPiece>): number {
    const end = bytes.indexOf(headersEnd)
    if (end === -1) {
      return bytes.length > longestHeaders
        ? this.refuse("A part of the form has headers that are too long")
        : 0
    }
    const name = end > longestHeaders ? undefined : nameOf(bytes.toString("utf8", lineEnd.length, end))
    if (name === undefined) return this.refuse("A part of the form has no content-disposition with a plain name")
    if (++this.parts > mostParts) return this.refuse(`The form has more than ${mostParts} parts`)
    const shown = name.slice(0, longestShown)
    if (isLikeModel(name)) return this.refuse(likeModel(shown), shown)
    if (choosesInForm(name)) this.choosing.push(shown)
    this.isModel = name === "model"
    if (this.isModel && this.model !== undefined) return this.refuse(modelTwice, "model")
    this.emit(bytes.subarray(0, end + headersEnd.length), out)
    this.state = CONTENT
    return end + headersEnd.length
  }

  private content(bytes: Buffer, length: number, out: Array<FormPiece>): number {
    if (!this.isModel) this.emit(bytes.subarray(0, length), out)
    else if (length > 0) {
      this.value.push(bytes.subarray(0, length))
      this.modelBytes += length
      if (this.modelBytes > this.longestModel) return this.refuse("model: is too long", "model")
    }
    return length
  }

  private endModel(out: Array<FormPiece>): void {
    this.model = Buffer.concat(this.value).toString("utf8")
    this.isModel = false
    out.push(modelPlace)
  }

  private emit(bytes: Uint8Array, out: Array<FormPiece>): void {
    const skipped = Math.min(this.unsent, bytes.length)
    this.unsent -= skipped
    if (bytes.length > skipped) out.push(bytes.subarray(skipped))
  }
}

/** The boundary of a `content-type`; `undefined` without one. */
export const boundaryOf = (contentType: string): string | undefined => {
  const found = /;\s*boundary=(?:"([^"\\\r\n]{1,70})"|([^\s";,]{1,70}))\s*(?:;|$)/i.exec(contentType)
  return found?.[1] ?? found?.[2]
}

// The two file formats of weights: GGUF, which llama.cpp and Ollama read, and safetensors, which transformers and vLLM read.
import { writeFileSync } from "node:fs"

/** A tensor of 32-bit floats. `shape` is outermost first; `data` is row-major. */
export interface Tensor {
  readonly name: string
  readonly shape: ReadonlyArray<number>
  readonly data: Float32Array
}

/** A value of a GGUF file's header. Integers are 32 bits without a sign. */
export type GgufValue =
  | { readonly uint32: number }
  | { readonly float32: number }
  | { readonly bool: boolean }
  | { readonly string: string }
  | { readonly strings: ReadonlyArray<string> }
  | { readonly int32s: ReadonlyArray<number> }

/** Tensors of a GGUF file begin at multiples of this many bytes. */
const alignment = 32

const uint32 = (value: number): Buffer => {
  const buffer = Buffer.alloc(4)
  buffer.writeUInt32LE(value)
  return buffer
}

const uint64 = (value: number): Buffer => {
  const buffer = Buffer.alloc(8)
  buffer.writeBigUInt64LE(BigInt(value))
  return buffer
}

const float32 = (value: number): Buffer => {
  const buffer = Buffer.alloc(4)
  buffer.writeFloatLE(value)
  return buffer
}

const text = (value: string): Buffer => {
  const bytes = Buffer.from(value)
  return Buffer.concat([uint64(bytes.length), bytes])
}

/** Numbers of the types in a header, by the format's own table. */
const kinds = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 }

const valueBytes = (value: GgufValue): Buffer => {
  if ("uint32" in value) return Buffer.concat([uint32(kinds.uint32), uint32(value.uint32)])
  if ("float32" in value) return Buffer.concat([uint32(kinds.float32), float32(value.float32)])
  if ("bool" in value) return Buffer.concat([uint32(kinds.bool), Buffer.from([value.bool ? 1 : 0])])
  if ("string" in value) return Buffer.concat([uint32(kinds.string), text(value.string)])
  const [kind, items] = "strings" in value
    ? [kinds.string, value.strings.map(text)]
    : [kinds.int32, value.int32s.map(uint32)]
  return Buffer.concat([uint32(kinds.array), uint32(kind), uint64(items.length), ...items])
}

const bytesOf = ({ data }: Tensor): Buffer => Buffer.from(data.buffer, data.byteOffset, data.byteLength)

const padding = (length: number): Buffer => Buffer.alloc((alignment - length % alignment) % alignment)

/** Writes a GGUF file of version 3. */
export const writeGguf = (
  file: string,
  header: Readonly<Record<string, GgufValue>>,
  tensors: ReadonlyArray<Tensor>
): void => {
  const entries = Object.entries(header)
  const head: Array<Buffer> = [Buffer.from("GGUF"), uint32(3), uint64(tensors.length), uint64(entries.length)]
  for (const [key, value] of entries) head.push(text(key), valueBytes(value))
  const body: Array<Buffer> = []
  let offset = 0
  for (const tensor of tensors) {
    const { name, shape } = tensor
    head.push(text(name), uint32(shape.length), ...shape.toReversed().map(uint64), uint32(0), uint64(offset))
    const bytes = bytesOf(tensor)
    const rest = padding(bytes.length)
    body.push(bytes, rest)
    offset += bytes.length + rest.length
  }
  const start = Buffer.concat(head)
  writeFileSync(file, Buffer.concat([start, padding(start.length), ...body]))
}

/** Writes a safetensors file. */
export const writeSafetensors = (file: string, tensors: ReadonlyArray<Tensor>): void => {
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } }
  let offset = 0
  for (const { data, name, shape } of tensors) {
    header[name] = { dtype: "F32", shape, data_offsets: [offset, offset + data.byteLength] }
    offset += data.byteLength
  }
  const words = Buffer.from(JSON.stringify(header))
  const head = Buffer.concat([words, Buffer.alloc((8 - words.length % 8) % 8, " ")])
  writeFileSync(file, Buffer.concat([uint64(head.length), head, ...tensors.map(bytesOf)]))
}

// Reads the headers of executables: the machine, and the required libraries.

/** A machine in Node's names. */
export interface Machine {
  readonly format: "elf" | "mach-o" | "pe"
  readonly cpu: "x64" | "arm64"
}

const cpus: Readonly<Record<Machine["format"], Readonly<Record<number, Machine["cpu"]>>>> = {
  elf: { 0x3e: "x64", 0xb7: "arm64" },
  "mach-o": { 0x0100_0007: "x64", 0x0100_000c: "arm64" },
  pe: { 0x8664: "x64", 0xaa64: "arm64" }
}

const codeOf = (bytes: Buffer): readonly [Machine["format"], number] | undefined => {
  if (bytes.readUInt32BE(0) === 0x7f45_4c46) return ["elf", bytes.readUInt16LE(18)]
  if (bytes.readUInt32LE(0) === 0xfeed_facf) return ["mach-o", bytes.readUInt32LE(4)]
  if (bytes.toString("latin1", 0, 2) !== "MZ") return undefined
  const header = bytes.readUInt32LE(0x3c)
  return bytes.toString("latin1", header, header + 4) === "PE\0\0" ? ["pe", bytes.readUInt16LE(header + 4)] : undefined
}

/** The machine of an executable, or `undefined` if the format is unknown. */
export const machineOf = (bytes: Buffer): Machine | undefined => {
  const [format, code] = codeOf(bytes) ?? []
  const cpu = format === undefined || code === undefined ? undefined : cpus[format][code]
  return format === undefined || cpu === undefined ? undefined : { format, cpu }
}

/** The files that a 64-bit ELF file needs. */
export interface Needs {
  /** The path of the loader; `undefined` for a library. */
  readonly loader: string | undefined
  /** Names of the required libraries. */
  readonly libraries: ReadonlyArray<string>
}

const segments = { load: 1, dynamic: 2, interpreter: 3 } as const
const tags = { end: 0n, needed: 1n, strings: 5n } as const

/** Reads the program headers and the dynamic section. */
export const needsOf = (bytes: Buffer): Needs => {
  const headers = Array.from({ length: bytes.readUInt16LE(56) }, (_, i) => {
    const at = Number(bytes.readBigUInt64LE(32)) + i * bytes.readUInt16LE(54)
    const field = (offset: number) => Number(bytes.readBigUInt64LE(at + offset))
    return { type: bytes.readUInt32LE(at), offset: field(8), address: field(16), size: field(32) }
  })
  const text = (at: number): string => bytes.toString("latin1", at, bytes.indexOf(0, at))
  const dynamic = headers.find(({ type }) => type === segments.dynamic)
  const loader = headers.find(({ type }) => type === segments.interpreter)
  const entries: Array<readonly [tag: bigint, value: number]> = []
  for (let at = dynamic?.offset ?? 0; dynamic !== undefined && at < dynamic.offset + dynamic.size; at += 16) {
    const tag = bytes.readBigInt64LE(at)
    if (tag === tags.end) break
    entries.push([tag, Number(bytes.readBigUInt64LE(at + 8))])
  }
  const address = entries.find(([tag]) => tag === tags.strings)?.[1] ?? 0
  const load = headers.find((each) =>
    each.type === segments.load && address >= each.address && address < each.address + each.size
  )
  const strings = address - (load?.address ?? 0) + (load?.offset ?? 0)
  return {
    loader: loader === undefined ? undefined : text(loader.offset),
    libraries: entries.filter(([tag]) => tag === tags.needed).map(([, value]) => text(strings + value))
  }
}

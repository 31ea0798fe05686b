/** The providers of models that LiteLLM names, as far as the gateway speaks their protocols. */
import type { UpstreamProtocol } from "../../../contracts/drivers.ts"

/** The API of a provider. */
interface Provider {
  readonly driver: UpstreamProtocol
  /** Its address where an entry has none. */
  readonly base?: string
  /** The variable of its key where an entry has none. */
  readonly variable?: string
  /** What stands behind the address of an entry. */
  readonly path?: string
}

/** Providers that speak the protocol of chat completions, with their addresses and the variables of their keys. */
const openAiProviders = `
openai https://api.openai.com/v1 OPENAI_API_KEY
deepseek https://api.deepseek.com/v1 DEEPSEEK_API_KEY
groq https://api.groq.com/openai/v1 GROQ_API_KEY
mistral https://api.mistral.ai/v1 MISTRAL_API_KEY
codestral https://codestral.mistral.ai/v1 CODESTRAL_API_KEY
together_ai https://api.together.xyz/v1 TOGETHERAI_API_KEY
openrouter https://openrouter.ai/api/v1 OPENROUTER_API_KEY
fireworks_ai https://api.fireworks.ai/inference/v1 FIREWORKS_AI_API_KEY
xai https://api.x.ai/v1 XAI_API_KEY
perplexity https://api.perplexity.ai PERPLEXITYAI_API_KEY
deepinfra https://api.deepinfra.com/v1/openai DEEPINFRA_API_KEY
cerebras https://api.cerebras.ai/v1 CEREBRAS_API_KEY
nvidia_nim https://integrate.api.nvidia.com/v1 NVIDIA_NIM_API_KEY
sambanova https://api.sambanova.ai/v1 SAMBANOVA_API_KEY
moonshot https://api.moonshot.ai/v1 MOONSHOT_API_KEY
dashscope https://dashscope-intl.aliyuncs.com/compatible-mode/v1 DASHSCOPE_API_KEY
hyperbolic https://api.hyperbolic.xyz/v1 HYPERBOLIC_API_KEY
novita https://api.novita.ai/v3/openai NOVITA_API_KEY
nebius https://api.studio.nebius.ai/v1 NEBIUS_API_KEY
zai https://api.z.ai/api/paas/v4 ZAI_API_KEY
volcengine https://ark.cn-beijing.volces.com/api/v3 VOLCENGINE_API_KEY
voyage https://api.voyageai.com/v1 VOYAGE_API_KEY
llamafile http://127.0.0.1:8080/v1
hosted_vllm
lm_studio
litellm_proxy
openai_like
custom_openai
xinference
`

const ollama: Provider = { driver: "openai", base: "http://localhost:11434", path: "/v1" }

/** By the names that LiteLLM has for them. */
export const providers: ReadonlyMap<string, Provider> = new Map<string, Provider>([
  ...openAiProviders.trim().split("\n").map((line): [string, Provider] => {
    const [name = "", base, variable] = line.split(" ")
    return [name, {
      driver: "openai",
      ...(base === undefined ? {} : { base }),
      ...(variable === undefined ? {} : { variable })
    }]
  }),
  ["anthropic", { driver: "messages", base: "https://api.anthropic.com", variable: "ANTHROPIC_API_KEY" }],
  ["gemini", { driver: "generate", base: "https://generativelanguage.googleapis.com", variable: "GEMINI_API_KEY" }],
  ["ollama", ollama],
  ["ollama_chat", ollama],
  ["azure", { driver: "openai" }]
])

/** Providers whose requests are signed, or have tokens that a cloud's login gives, in a way that is not known here. */
export const signed = new Set("sagemaker sagemaker_chat watsonx oci sap".split(" "))

/** Names without a provider of which LiteLLM knows whose they are. */
export const wellKnown: ReadonlyArray<readonly [names: RegExp, provider: string]> = [
  [/^(?:gpt-|chatgpt-|o[134](?:-|$)|text-embedding-|dall-e|whisper|tts-|omni-moderation|text-moderation)/, "openai"],
  [/^claude-/, "anthropic"]
]

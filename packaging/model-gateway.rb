class ModelGateway < Formula
  desc "Self-hosted gateway for language model APIs, with failover, keys, limits and a console"
  homepage "@URL@"
  url "@URL@"
  sha256 "@SHA256@"
  license "MIT"

  depends_on "node"

  def install
    system "npm", "install", *std_npm_args
    bin.install_symlink libexec.glob("bin/*")
  end

  service do
    run opt_bin/"model-gateway"
    environment_variables GATEWAY_CONFIG_PATH: var/"model-gateway/config.json", GATEWAY_DATA_DIR: var/"model-gateway"
    keep_alive successful_exit: false
    working_dir var/"model-gateway"
    log_path var/"log/model-gateway.log"
    error_log_path var/"log/model-gateway.log"
  end

  def post_install
    (var/"model-gateway").mkpath
  end

  test do
    assert_match "model-gateway v#{version}", shell_output("#{bin}/model-gateway --version")
    port = free_port
    with_env(PORT: port.to_s) do
      pid = spawn bin/"model-gateway"
      system bin/"model-gateway", "health", "--wait", "20"
    ensure
      Process.kill "TERM", pid
      Process.wait pid
    end
  end
end

// Runs upstream's integration tests on another server in kube-apiserver's place, as a process of its own:
//
//	go run ./upstream-tests -server FILE -etcd FILE PACKAGE… [-- FLAGS OF THE TESTS]
//
// in this module, with packages such as k8s.io/apiextensions-apiserver/test/integration or k8s.io/kubernetes/test/integration/dryrun. The
// server is one that is called kube-apiserver, or a link of that name. Upstream's modules are copied into a folder of this user's cache,
// where their test servers start that program instead of themselves. What tests set within their own process does not reach the server:
// those that switch feature gates, take its parts or count its metrics cannot pass.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed spawn.go.txt
var spawn string

//go:embed flags.go.txt
var flags string

//go:embed extension_flags.go.txt
var extensionFlags string

// A place in a copied file, and what is put before it.
type insertion struct{ file, before, text string }

const (
	kubernetes    = "k8s.io/kubernetes"
	apiextensions = "k8s.io/apiextensions-apiserver"
	testing       = "cmd/kube-apiserver/app/testing"
)

var copies = map[string][]insertion{
	kubernetes: {
		{testing + "/testserver.go", "	completedOptions, err := s.Complete(tCtx)", `	if os.Getenv("SERVER_UNDER_TEST") != "" {
		spawned := ChangedFlags(namedFlagSets)
		if instanceOptions.EnableCertAuth {
			spawned = append(spawned, FrontProxyFlags(s.Authentication.RequestHeader)...)
		}
		tokens := ""
		if s.Authentication.TokenFile != nil {
			tokens = s.Authentication.TokenFile.TokenFile
		}
		spawned = append(spawned, "--etcd-servers="+storageConfig.Transport.ServerList[0], "--etcd-prefix="+storageConfig.Prefix)
		config, stop, err := Spawn(t.Name(), spawned, s.SecureServing.Listener, result.TmpDir, tokens, instanceOptions.SkipHealthzCheck)
		if err != nil {
			return result, err
		}
		etcdClient, _, err := GetEtcdClients(storageConfig.Transport)
		if err != nil {
			stop()
			return result, err
		}
		result.ClientConfig, result.ServerOpts = config, s
		result.EtcdClient, result.EtcdStoragePrefix = etcdClient, storageConfig.Prefix
		result.TearDownFn = func() {
			stop()
			tearDown()
			etcdClient.Close()
		}
		return result, nil
	}
`},
		{"test/integration/framework/test_server.go", "	completedOptions, err := opts.Complete(ctx)", `	if os.Getenv("SERVER_UNDER_TEST") != "" {
		spawned := kubeapiservertesting.ChangedFlags(opts.Flags())
		tokens := ""
		if opts.Authentication.TokenFile != nil {
			tokens = opts.Authentication.TokenFile.TokenFile
		}
		config, stop, err := kubeapiservertesting.Spawn(t.Name(), spawned, listener, certDir, tokens, false)
		if err != nil {
			t.Fatal(err)
		}
		return client.NewForConfigOrDie(config), config, func() {
			stop()
			tearDownFn()
		}
	}
`},
		{"test/integration/framework/test_server.go", `	"k8s.io/kubernetes/pkg/api/legacyscheme"`, `	kubeapiservertesting "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
`},
	},
	apiextensions: {
		{"pkg/cmd/server/testing/testserver.go", "	config, err := s.Config()", `	if os.Getenv("SERVER_UNDER_TEST") != "" {
		s.RecommendedOptions.SecureServing.ServerCert.FixtureDirectory = result.TmpDir
		config, err := s.Config()
		if err != nil {
			return result, err
		}
		spawned, err := SpawnedFlags(customFlags, result.TmpDir)
		if err != nil {
			return result, err
		}
		name := "test"
		if named, ok := t.(interface{ Name() string }); ok {
			name = named.Name()
		}
		client, stop, err := Spawn(name, spawned, s.RecommendedOptions.SecureServing.Listener, result.TmpDir, "", false)
		if err != nil {
			return result, err
		}
		_ = ctx
		result.ClientConfig, result.ServerOpts, result.CompletedConfig = client, s, config.Complete()
		result.TearDownFn = func() {
			stop()
			tearDown()
		}
		return result, nil
	}
`},
	},
}

func main() {
	server := flag.String("server", "", "the program under test, called kube-apiserver")
	etcd := flag.String("etcd", "", "etcd 3.6 [default: the one that recordings are made with]")
	flag.Parse()
	if err := run(*server, *etcd, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(server, etcd string, arguments []string) error {
	packages, ofTests := arguments, []string(nil)
	if at := slices.Index(arguments, "--"); at >= 0 {
		packages, ofTests = arguments[:at], arguments[at+1:]
	}
	if server == "" || len(packages) == 0 {
		return errors.New("name a program by -server, and packages of tests")
	}
	server, err := filepath.Abs(server)
	if err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	cache = filepath.Join(cache, "gardener-conformance")
	if etcd == "" {
		etcd = filepath.Join(cache, "etcd")
	}
	module := filepath.Join(cache, "upstream-tests")
	if err := prepare(module); err != nil {
		return err
	}
	url, stop, err := startEtcd(etcd)
	if err != nil {
		return err
	}
	defer stop()
	logs := filepath.Join(module, "logs")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	fmt.Println("the servers' output is in", logs)
	failed := 0
	for _, name := range packages {
		if err := test(module, name, ofTests, "SERVER_UNDER_TEST="+server, "SERVER_LOGS="+logs, "KUBE_INTEGRATION_ETCD_URL="+url); err != nil {
			fmt.Fprintln(os.Stderr, name+":", err)
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d packages", failed, len(packages))
	}
	return nil
}

// Copies upstream's modules, changes their test servers, and makes a module that takes the copies.
func prepare(module string) error {
	own, err := os.ReadFile("go.mod")
	if err != nil {
		return fmt.Errorf("this is to be run in the module `reference`: %w", err)
	}
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		return err
	}
	text := string(own)
	for path, insertions := range copies {
		to := filepath.Join(module, filepath.Base(path))
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		found, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", path).Output()
		if err != nil {
			return fmt.Errorf("go list -m %s: %w", path, err)
		}
		if err := copyTree(strings.TrimSpace(string(found)), to); err != nil {
			return err
		}
		for _, one := range insertions {
			file := filepath.Join(to, one.file)
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if strings.Count(string(content), one.before) != 1 {
				return fmt.Errorf("%s: %q is not there once: this release of Kubernetes is another one", file, one.before)
			}
			changed := strings.Replace(string(content), one.before, one.text+one.before, 1)
			if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
				return err
			}
		}
		replaced := path + " => " + to
		if at := strings.Index(text, "\t"+path+" => "); at >= 0 {
			end := at + strings.Index(text[at:], "\n")
			text = text[:at] + "\t" + replaced + text[end:]
		} else {
			text += "\nreplace " + replaced + "\n"
		}
	}
	for file, content := range map[string]string{
		"kubernetes/" + testing + "/spawn.go":                             spawn,
		"kubernetes/" + testing + "/spawned_flags.go":                     flags,
		"apiextensions-apiserver/pkg/cmd/server/testing/spawn.go":         spawn,
		"apiextensions-apiserver/pkg/cmd/server/testing/spawned_flags.go": extensionFlags,
		"go.mod": text,
		"go.sum": string(sums),
	} {
		if err := os.WriteFile(filepath.Join(module, file), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		under, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, under), 0o755)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, under), content, 0o644)
	})
}

// Starts etcd on a free port, with its data in a folder that is gone afterwards.
func startEtcd(program string) (string, func(), error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	url := "http://" + free.Addr().String()
	free.Close()
	data, err := os.MkdirTemp("", "etcd")
	if err != nil {
		return "", nil, err
	}
	command := exec.Command(program, "--data-dir", data, "--listen-client-urls", url, "--advertise-client-urls", url,
		"--listen-peer-urls", "http://127.0.0.1:0", "--unsafe-no-fsync", "--log-level", "error")
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		return "", nil, fmt.Errorf("etcd does not start; record anything first, which builds it, or name one by -etcd: %w", err)
	}
	stop := func() {
		command.Process.Kill()
		command.Wait()
		os.RemoveAll(data)
	}
	for range 100 {
		if connection, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
			connection.Close()
			return url, stop, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	stop()
	return "", nil, errors.New("etcd does not listen")
}

// Builds the tests of a package and runs them where their files are, by the name that upstream's have: some look at it.
func test(module, name string, arguments []string, environment ...string) error {
	base := filepath.Base(name)
	program := filepath.Join(module, "built", strings.ReplaceAll(name, "/", "_"), base+".test")
	build := exec.Command("go", "test", "-mod=mod", "-vet=off", "-trimpath", "-c", "-o", program, name)
	build.Dir, build.Stderr = module, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("does not build: %w", err)
	}
	folder := exec.Command("go", "list", "-mod=mod", "-f", "{{.Dir}}", name)
	folder.Dir = module
	found, err := folder.Output()
	if err != nil {
		return err
	}
	tests := exec.Command(program, append([]string{"-test.v", "-test.timeout=30m"}, arguments...)...)
	tests.Dir = strings.TrimSpace(string(found))
	// test servers ask where their files are, which a program does not know that was built as recordings' are, whose packages it shares
	tests.Env = append(append(os.Environ(), "TEST_SRCDIR="+module, "TEST_WORKSPACE=."), environment...)
	tests.Stdout, tests.Stderr = os.Stdout, os.Stderr
	return tests.Run()
}

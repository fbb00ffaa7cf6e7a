// Package envtest holds what a Go project's tests do with controller-runtime's envtest: run on whatever kube-apiserver lies in
// KUBEBUILDER_ASSETS, the real one or ours.
package envtest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var (
	environment *envtest.Environment
	config      *rest.Config
	kube        client.WithWatch
	thing       = schema.GroupVersionKind{Group: "envtest.example.com", Version: "v1", Kind: "Thing"}
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	keys, err := os.MkdirTemp("", "envtest-keys")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(keys)
	public, private := serviceAccountKeys(keys)
	started := time.Now()
	environment = &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition()}}
	arguments := environment.ControlPlane.GetAPIServer().Configure()
	arguments.Set("service-account-key-file", public).Set("service-account-signing-key-file", private)
	arguments.Set("event-ttl", "5s")
	if os.Getenv("ENVTEST_OUTPUT") != "" {
		environment.AttachControlPlaneOutput = true
	}
	config, err = environment.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "the control plane does not start:", err)
		return 1
	}
	fmt.Printf("control plane and definition there after %v\n", time.Since(started).Round(time.Millisecond))
	kube, err = client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		panic(err)
	}
	code := m.Run()
	stopping := time.Now()
	if err := environment.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "the control plane does not stop:", err)
		return 1
	}
	fmt.Printf("control plane stopped after %v\n", time.Since(stopping).Round(time.Millisecond))
	return code
}

// serviceAccountKeys writes an RSA key pair, as older versions of envtest make.
func serviceAccountKeys(folder string) (public, private string) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		panic(err)
	}
	public, private = filepath.Join(folder, "sa.pub"), filepath.Join(folder, "sa.key")
	write := func(path, kind string, bytes []byte) {
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			panic(err)
		}
	}
	write(public, "PUBLIC KEY", spki)
	write(private, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
	return public, private
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	integer := apiextensionsv1.JSONSchemaProps{Type: "integer", Minimum: pointer(float64(0))}
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	object := func(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	size := integer
	size.Default = &apiextensionsv1.JSON{Raw: []byte("1")}
	own := object(map[string]apiextensionsv1.JSONSchemaProps{
		"spec":   object(map[string]apiextensionsv1.JSONSchemaProps{"size": size, "color": text}),
		"status": object(map[string]apiextensionsv1.JSONSchemaProps{"seen": integer}),
	})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.envtest.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: thing.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: thing.Kind, ListKind: "ThingList"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: thing.Version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &own},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

func pointer[T any](value T) *T { return &value }

// namespace makes a namespace for one test.
func namespace(t *testing.T) string {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "envtest-"}}
	must(t, kube.Create(t.Context(), object))
	return object.Name
}

func newThing(namespace, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(thing)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not within 20 seconds: %s", what)
}

func TestWritesAndReads(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "one", Labels: map[string]string{"a": "b"}}, Data: map[string]string{"k": "v"}}
	must(t, kube.Create(ctx, object))
	if err := kube.Create(ctx, object.DeepCopy()); !apierrors.IsAlreadyExists(err) && err.Error() != "resourceVersion should not be set on objects to be created" {
		t.Fatal(err)
	}
	read := &corev1.ConfigMap{}
	must(t, kube.Get(ctx, client.ObjectKeyFromObject(object), read))
	if read.UID != object.UID || read.ResourceVersion != object.ResourceVersion || read.Data["k"] != "v" {
		t.Fatalf("%v is not %v", read, object)
	}
	stale := read.DeepCopy()
	read.Data["k"] = "w"
	must(t, kube.Update(ctx, read))
	stale.Data["k"] = "x"
	if err := kube.Update(ctx, stale); !apierrors.IsConflict(err) {
		t.Fatalf("a stale update gave %v", err)
	}
	must(t, kube.Patch(ctx, read, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"more":"m"}}`))))
	list := &corev1.ConfigMapList{}
	must(t, kube.List(ctx, list, client.InNamespace(ns), client.MatchingLabels{"a": "b"}))
	if len(list.Items) != 1 || list.Items[0].Data["more"] != "m" {
		t.Fatalf("%v", list.Items)
	}
	must(t, kube.Delete(ctx, read))
	if err := kube.Get(ctx, client.ObjectKeyFromObject(object), read); !apierrors.IsNotFound(err) {
		t.Fatalf("a deleted object gave %v", err)
	}
	missing := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "nowhere", Name: "one"}}
	if err := kube.Create(ctx, missing); !apierrors.IsNotFound(err) {
		t.Fatalf("an object in no namespace gave %v", err)
	}
	large := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "large"}, Data: map[string]string{"k": strings.Repeat("x", 2<<20)}}
	if err := kube.Create(ctx, large); err == nil {
		t.Fatal("an object of 2 MiB was taken")
	}
}

func TestWatch(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	list := &corev1.SecretList{}
	must(t, kube.List(ctx, list, client.InNamespace(ns)))
	watcher, err := kube.Watch(ctx, &corev1.SecretList{ListMeta: list.ListMeta}, client.InNamespace(ns), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	must(t, err)
	defer watcher.Stop()
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "one"}, StringData: map[string]string{"k": "v"}}
	must(t, kube.Create(ctx, object))
	object.Labels = map[string]string{"a": "b"}
	must(t, kube.Update(ctx, object))
	must(t, kube.Delete(ctx, object))
	var told []watch.EventType
	for range 3 {
		select {
		case event := <-watcher.ResultChan():
			told = append(told, event.Type)
		case <-time.After(10 * time.Second):
			t.Fatalf("only %v", told)
		}
	}
	if !reflect.DeepEqual(told, []watch.EventType{watch.Added, watch.Modified, watch.Deleted}) {
		t.Fatalf("%v", told)
	}
}

func TestCustomResource(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	object := newThing(ns, "one", map[string]any{"color": "red", "unknown": "x"})
	must(t, kube.Create(ctx, object))
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	if !reflect.DeepEqual(spec, map[string]any{"color": "red", "size": int64(1)}) {
		t.Fatalf("not defaulted and pruned: %v", spec)
	}
	if err := kube.Create(ctx, newThing(ns, "two", map[string]any{"size": int64(-1)})); !apierrors.IsInvalid(err) {
		t.Fatalf("an invalid object gave %v", err)
	}
	must(t, unstructured.SetNestedField(object.Object, int64(3), "status", "seen"))
	must(t, unstructured.SetNestedField(object.Object, "blue", "spec", "color"))
	must(t, kube.Status().Update(ctx, object))
	must(t, kube.Get(ctx, client.ObjectKeyFromObject(object), object))
	color, _, _ := unstructured.NestedString(object.Object, "spec", "color")
	seen, _, _ := unstructured.NestedInt64(object.Object, "status", "seen")
	if color != "red" || seen != 3 || object.GetGeneration() != 1 {
		t.Fatalf("the status update gave %v", object.Object)
	}
	patched := object.DeepCopy()
	must(t, unstructured.SetNestedField(patched.Object, int64(4), "status", "seen"))
	must(t, kube.Status().Patch(ctx, patched, client.MergeFrom(object)))
	seen, _, _ = unstructured.NestedInt64(patched.Object, "status", "seen")
	if seen != 4 {
		t.Fatalf("the status patch gave %v", patched.Object)
	}
}

func TestServerSideApply(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	apply := func(manager, value string, options ...client.ApplyOption) error {
		configuration := corev1ac.ConfigMap("one", ns).WithData(map[string]string{"k": value})
		return kube.Apply(ctx, configuration, append(options, client.FieldOwner(manager))...)
	}
	must(t, apply("first", "1"))
	must(t, apply("first", "2"))
	if err := apply("second", "3"); !apierrors.IsConflict(err) {
		t.Fatalf("taking over another one's field gave %v", err)
	}
	must(t, apply("second", "3", client.ForceOwnership))
	object := &corev1.ConfigMap{}
	must(t, kube.Get(ctx, client.ObjectKey{Namespace: ns, Name: "one"}, object))
	var managers []string
	for _, entry := range object.ManagedFields {
		managers = append(managers, entry.Manager)
	}
	slices.Sort(managers)
	if object.Data["k"] != "3" || !slices.Contains(managers, "second") {
		t.Fatalf("%v is of %v", object.Data, managers)
	}
}

// reconciler keeps a ConfigMap for each Thing, and writes into its status what it has seen.
type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := newThing("", "", nil)
	if err := r.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	size, _, _ := unstructured.NestedInt64(object.Object, "spec", "size")
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, owned, func() error {
		owned.Data = map[string]string{"size": fmt.Sprint(size)}
		return controllerutil.SetControllerReference(object, owned, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if !object.GetDeletionTimestamp().IsZero() {
		controllerutil.RemoveFinalizer(object, "envtest.example.com/own")
		return ctrl.Result{}, r.Update(ctx, object)
	}
	if controllerutil.AddFinalizer(object, "envtest.example.com/own") {
		if err := r.Update(ctx, object); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := unstructured.SetNestedField(object.Object, size, "status", "seen"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Update(ctx, object)
}

func TestManager(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ns := namespace(t)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "envtest", LeaderElectionNamespace: ns, LeaderElectionReleaseOnCancel: true,
	})
	must(t, err)
	must(t, ctrl.NewControllerManagedBy(manager).For(newThing("", "", nil)).Owns(&corev1.ConfigMap{}).Complete(&reconciler{manager.GetClient()}))
	ended := make(chan error)
	go func() { ended <- manager.Start(ctx) }()

	for number := range 20 {
		must(t, kube.Create(ctx, newThing(ns, fmt.Sprintf("thing-%d", number), map[string]any{"size": int64(number)})))
	}
	seen := func(name string) int64 {
		object := newThing(ns, name, nil)
		if err := kube.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return -1
		}
		seen, found, _ := unstructured.NestedInt64(object.Object, "status", "seen")
		if !found {
			return -1
		}
		return seen
	}
	for number := range int64(20) {
		name := fmt.Sprintf("thing-%d", number)
		eventually(t, name+" is reconciled", func() bool { return seen(name) == number })
	}
	one := newThing(ns, "thing-1", nil)
	must(t, kube.Patch(ctx, one, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"size":100}}`))))
	eventually(t, "the change is reconciled", func() bool { return seen("thing-1") == 100 })
	owned := &corev1.ConfigMap{}
	must(t, kube.Get(ctx, client.ObjectKey{Namespace: ns, Name: "thing-1"}, owned))
	if owned.Data["size"] != "100" || !metav1.IsControlledBy(owned, one) {
		t.Fatalf("%v", owned)
	}
	must(t, kube.Delete(ctx, owned))
	eventually(t, "the deleted object comes back", func() bool {
		return kube.Get(ctx, client.ObjectKeyFromObject(owned), owned) == nil
	})
	must(t, kube.Delete(ctx, one))
	eventually(t, "the finalizer lets it go", func() bool {
		return apierrors.IsNotFound(kube.Get(ctx, client.ObjectKeyFromObject(one), one))
	})
	lease := &coordinationv1.Lease{}
	must(t, kube.Get(ctx, client.ObjectKey{Namespace: ns, Name: "envtest"}, lease))
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestUsersAndRoles(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	user, err := environment.AddUser(envtest.User{Name: "alice", Groups: []string{"readers"}}, nil)
	must(t, err)
	own, err := client.New(user.Config(), client.Options{Scheme: scheme.Scheme})
	must(t, err)
	list := &corev1.ConfigMapList{}
	if err := own.List(ctx, list, client.InNamespace(ns)); !apierrors.IsForbidden(err) {
		t.Fatalf("without a role: %v", err)
	}
	must(t, kube.Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "readers"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
	}))
	must(t, kube.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "readers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "readers"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "readers"}},
	}))
	eventually(t, "the role counts", func() bool { return own.List(ctx, list, client.InNamespace(ns)) == nil })
	nobody := rest.AnonymousClientConfig(config)
	anonymous, err := client.New(nobody, client.Options{Scheme: scheme.Scheme, Mapper: kube.RESTMapper()})
	must(t, err)
	if err := anonymous.List(ctx, list, client.InNamespace(ns)); !apierrors.IsForbidden(err) {
		t.Fatalf("without credentials: %v", err)
	}
	nobody.BearerToken = "nonsense"
	unknown, err := client.New(nobody, client.Options{Scheme: scheme.Scheme, Mapper: kube.RESTMapper()})
	must(t, err)
	if err := unknown.List(ctx, list, client.InNamespace(ns)); !apierrors.IsUnauthorized(err) {
		t.Fatalf("with a wrong token: %v", err)
	}
}

func TestServiceAccountToken(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "robot"}}
	must(t, kube.Create(ctx, account))
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: pointer(int64(3600))}}
	must(t, kube.SubResource("token").Create(ctx, account, request))
	own := rest.AnonymousClientConfig(config)
	own.BearerToken = request.Status.Token
	clients, err := kubernetes.NewForConfig(own)
	must(t, err)
	review, err := clients.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	must(t, err)
	if name := review.Status.UserInfo.Username; name != "system:serviceaccount:"+ns+":robot" {
		t.Fatalf("the token is of %q", name)
	}
}

func TestEventsEnd(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "one"}, EventTime: metav1.NowMicro(), Type: "Normal", Reason: "Test", Action: "Test",
		ReportingController: "envtest.example.com/test", ReportingInstance: "one", Note: "ends by itself",
		Regarding: corev1.ObjectReference{Namespace: ns, Name: "one", Kind: "ConfigMap", APIVersion: "v1"},
	}
	must(t, kube.Create(ctx, event))
	other := &corev1.Event{}
	must(t, kube.Get(ctx, client.ObjectKeyFromObject(event), other))
	if other.Message != "ends by itself" {
		t.Fatalf("%v", other)
	}
	eventually(t, "the event is gone", func() bool { return apierrors.IsNotFound(kube.Get(ctx, client.ObjectKeyFromObject(event), event)) })
}

func TestServices(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	own := &corev1.Service{}
	must(t, kube.Get(ctx, client.ObjectKey{Namespace: "default", Name: "kubernetes"}, own))
	if own.Spec.ClusterIP != "10.0.0.1" {
		t.Fatalf("%v", own.Spec)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	must(t, kube.Create(ctx, service))
	if !strings.HasPrefix(service.Spec.ClusterIP, "10.0.0.") || service.Spec.ClusterIP == "10.0.0.1" {
		t.Fatalf("%v", service.Spec)
	}
}

func TestHealthAndDiscovery(t *testing.T) {
	clients, err := kubernetes.NewForConfig(config)
	must(t, err)
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/readyz/etcd", "/readyz/poststarthook/rbac/bootstrap-roles"} {
		body, err := clients.RESTClient().Get().AbsPath(path).DoRaw(t.Context())
		must(t, err)
		if string(body) != "ok" {
			t.Fatalf("%s: %s", path, body)
		}
	}
	mapping, err := kube.RESTMapper().RESTMapping(thing.GroupKind(), thing.Version)
	must(t, err)
	if mapping.Resource.Resource != "things" || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		t.Fatalf("%v", mapping)
	}
	version, err := clients.Discovery().ServerVersion()
	must(t, err)
	if !strings.HasPrefix(version.GitVersion, "v1.") {
		t.Fatalf("%v", version)
	}
	response := clients.RESTClient().Get().AbsPath("/nowhere").Do(t.Context())
	var status int
	response.StatusCode(&status)
	var error apierrors.APIStatus
	if status != http.StatusNotFound || !errors.As(response.Error(), &error) {
		t.Fatalf("%d: %v", status, response.Error())
	}
}

// Package kube is the client of a Kubernetes cluster: the requests that Touchstone makes, and no others.
//
// It consists of client-go's REST client, its generic typed client, and the types of four API groups. client-go's typed clients register the
// types of all groups: they would make the program 35 MB larger, and this package makes it 9 MB larger. The package refuses nothing: a caller
// gets the errors of the API server, and [Explain] adds the remedy.
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// Scheme has the types of all requests.
var Scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, nodev1.AddToScheme, authorizationv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(fmt.Sprintf("the types of Kubernetes contradict each other: %v", err))
		}
	}
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return s
}

// Requests per second of a client, and their burst. client-go's default of 5 delays requests, and with them the times of an agent. Callers bound the
// requests that they make at the same time, so this is only a limit for faults.
const (
	queriesPerSecond = 1000
	queryBurst       = 1000
)

// Place selects a cluster as kubectl does.
type Place struct {
	// Kubeconfig is a file; empty for $KUBECONFIG, or ~/.kube/config.
	Kubeconfig string
	// Context is a context of the file; empty for its current one.
	Context string
}

// Load returns the configuration of a client and the namespace of the context. A missing configuration is a *NoClusterError.
func (p Place) Load() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = p.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: p.Context})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", &NoClusterError{err}
	}
	namespace, _, err := loader.Namespace()
	return config, namespace, err
}

// NoClusterError reports that no configuration names a cluster.
type NoClusterError struct{ Err error }

func (e *NoClusterError) Error() string {
	if clientcmd.IsEmptyConfig(e.Err) {
		return "no cluster is configured: name a file with --kubeconfig or KUBECONFIG, as for kubectl"
	}
	return fmt.Sprintf("read the configuration of the cluster: %v; check --kubeconfig, KUBECONFIG and --context with kubectl config view", e.Err)
}

// Unwrap returns the cause.
func (e *NoClusterError) Unwrap() error { return e.Err }

// Client makes requests. Its methods are safe for concurrent use.
type Client struct {
	core, rbac, node, authorization rest.Interface
	// Host is the address of the API server.
	Host string

	warnings warnings
}

// quiet keeps client-go from writing to standard error: callers get its errors.
var quiet = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

// New returns a client for a configuration. It makes no request. The agent names the program in the server's log.
func New(config *rest.Config, agent string) (*Client, error) {
	quiet()
	c := &Client{Host: config.Host}
	base := rest.CopyConfig(config)
	base.QPS, base.Burst, base.UserAgent = queriesPerSecond, queryBurst, agent
	base.WarningHandlerWithContext = &c.warnings
	base.NegotiatedSerializer = serializer.NewCodecFactory(Scheme).WithoutConversion()
	// It takes both sides less time than JSON, and a coordinator reads the pods of a thousand agents.
	base.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	transport, err := rest.HTTPClientFor(base)
	if err != nil {
		return nil, &NoClusterError{err}
	}
	for _, group := range []struct {
		client  *rest.Interface
		version schema.GroupVersion
		path    string
	}{
		{&c.core, corev1.SchemeGroupVersion, "/api"},
		{&c.rbac, rbacv1.SchemeGroupVersion, "/apis"},
		{&c.node, nodev1.SchemeGroupVersion, "/apis"},
		{&c.authorization, authorizationv1.SchemeGroupVersion, "/apis"},
	} {
		base.GroupVersion, base.APIPath = &group.version, group.path
		if *group.client, err = rest.RESTClientForConfigAndClient(base, transport); err != nil {
			return nil, &NoClusterError{err}
		}
	}
	return c, nil
}

// InCluster returns a client for the service account of this pod.
func InCluster(agent string) (*Client, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server from within a pod: %w", err)
	}
	return New(config, agent)
}

// warnings collects the warnings of the server.
type warnings struct {
	mu   sync.Mutex
	list []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	if code != 299 || text == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, text)
}

// Warnings returns the warnings of the server since the last call.
func (c *Client) Warnings() []string {
	c.warnings.mu.Lock()
	defer c.warnings.mu.Unlock()
	list := c.warnings.list
	c.warnings.list = nil
	return list
}

// codec spells the options of requests.
var codec = runtime.NewParameterCodec(Scheme)

// object is a type of the API.
type object interface {
	runtime.Object
	metav1.Object
}

// Resource makes the requests about the objects of one type.
type Resource[T object, L runtime.Object] = gentype.ClientWithList[T, L]

// pointer is the constraint for a pointer to V that is an object.
type pointer[V any] interface {
	*V
	runtime.Object
}

func resource[V, W any, T interface {
	pointer[V]
	object
}, L pointer[W]](client rest.Interface, plural, namespace string) *Resource[T, L] {
	return gentype.NewClientWithList[T, L](plural, client, codec, namespace, func() T { return new(V) }, func() L { return new(W) })
}

// Pods makes the requests about the pods of a namespace. The typed and the imitated clients of client-go have one too.
type Pods interface {
	Create(ctx context.Context, pod *corev1.Pod, options metav1.CreateOptions) (*corev1.Pod, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Pod, error)
	List(ctx context.Context, options metav1.ListOptions) (*corev1.PodList, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (*corev1.Pod, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	// GetLogs is the request for the log of a pod.
	GetLogs(name string, options *corev1.PodLogOptions) *rest.Request
}

// Events makes the requests about the events of a namespace.
type Events interface {
	List(ctx context.Context, options metav1.ListOptions) (*corev1.EventList, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// pods adds the log to the requests of each type.
type pods struct {
	*Resource[*corev1.Pod, *corev1.PodList]
	client    rest.Interface
	namespace string
}

// Pods returns the pods of a namespace; of all namespaces if it is empty.
func (c *Client) Pods(namespace string) Pods {
	return pods{resource[corev1.Pod, corev1.PodList](c.core, "pods", namespace), c.core, namespace}
}

// GetLogs implements Pods.
func (p pods) GetLogs(name string, options *corev1.PodLogOptions) *rest.Request {
	return p.client.Get().Namespace(p.namespace).Name(name).Resource("pods").SubResource("log").VersionedParams(options, codec)
}

// Namespaces returns the namespaces.
func (c *Client) Namespaces() *Resource[*corev1.Namespace, *corev1.NamespaceList] {
	return resource[corev1.Namespace, corev1.NamespaceList](c.core, "namespaces", "")
}

// Nodes returns the nodes.
func (c *Client) Nodes() *Resource[*corev1.Node, *corev1.NodeList] {
	return resource[corev1.Node, corev1.NodeList](c.core, "nodes", "")
}

// ServiceAccounts returns the service accounts of a namespace.
func (c *Client) ServiceAccounts(namespace string) *Resource[*corev1.ServiceAccount, *corev1.ServiceAccountList] {
	return resource[corev1.ServiceAccount, corev1.ServiceAccountList](c.core, "serviceaccounts", namespace)
}

// ConfigMaps returns the config maps of a namespace.
func (c *Client) ConfigMaps(namespace string) *Resource[*corev1.ConfigMap, *corev1.ConfigMapList] {
	return resource[corev1.ConfigMap, corev1.ConfigMapList](c.core, "configmaps", namespace)
}

// Events returns the events of a namespace.
func (c *Client) Events(namespace string) Events {
	return resource[corev1.Event, corev1.EventList](c.core, "events", namespace)
}

// Quotas returns the resource quotas of a namespace.
func (c *Client) Quotas(namespace string) *Resource[*corev1.ResourceQuota, *corev1.ResourceQuotaList] {
	return resource[corev1.ResourceQuota, corev1.ResourceQuotaList](c.core, "resourcequotas", namespace)
}

// Roles returns the roles of a namespace.
func (c *Client) Roles(namespace string) *Resource[*rbacv1.Role, *rbacv1.RoleList] {
	return resource[rbacv1.Role, rbacv1.RoleList](c.rbac, "roles", namespace)
}

// RoleBindings returns the bindings of a namespace.
func (c *Client) RoleBindings(namespace string) *Resource[*rbacv1.RoleBinding, *rbacv1.RoleBindingList] {
	return resource[rbacv1.RoleBinding, rbacv1.RoleBindingList](c.rbac, "rolebindings", namespace)
}

// RuntimeClasses returns the runtime classes.
func (c *Client) RuntimeClasses() *Resource[*nodev1.RuntimeClass, *nodev1.RuntimeClassList] {
	return resource[nodev1.RuntimeClass, nodev1.RuntimeClassList](c.node, "runtimeclasses", "")
}

// Allowed reports whether the user may make a kind of request, with the server's reason.
func (c *Client) Allowed(ctx context.Context, request authorizationv1.ResourceAttributes) (bool, string, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &request}}
	err := c.authorization.Post().Resource("selfsubjectaccessreviews").VersionedParams(&metav1.CreateOptions{}, codec).Body(review).Do(ctx).Into(review)
	return review.Status.Allowed, review.Status.Reason, err
}

// Version returns the version of the API server.
func (c *Client) Version(ctx context.Context) (version.Info, error) {
	var info version.Info
	body, err := c.core.Get().AbsPath("/version").Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(body, &info)
	}
	return info, err
}

// statusOf is the HTTP status of a server's answer; 0 without an answer.
func statusOf(err error) int {
	var answer interface{ Status() metav1.Status }
	if errors.As(err, &answer) {
		return int(answer.Status().Code)
	}
	return 0
}

// unavailable are the states of a server that another attempt may find in order.
func unavailable(status int) bool {
	return status == http.StatusTooManyRequests || status >= http.StatusInternalServerError && status != http.StatusNotImplemented
}
